// https://nodejs.org/api/http.html: clients send with fetch, servers receive through `cloudflare:node`.
import * as agents from "./http_agent.js";
import { validateHeaderName, validateHeaderValue, METHODS } from "./http_common.js";
import { ClientRequest } from "./http_client.js";
import { IncomingMessage } from "./http_incoming.js";
import { OutgoingMessage } from "./http_outgoing.js";
import { _connectionListener, createServer, Server, ServerResponse } from "./http_server.js";
import { STATUS_CODES } from "./http_status.js";
import { requireInteger } from "./validate.js";

export const maxHeaderSize = 16384;
export const { Agent, globalAgent } = agents;
export const { CloseEvent, MessageEvent, WebSocket } = globalThis;

export function request(url, options = undefined, callback = undefined) {
  return new ClientRequest(url, options, callback);
}

export function get(url, options = undefined, callback = undefined) {
  return request(url, options, callback).end();
}

export function setMaxIdleHTTPParsers(max) {
  requireInteger(max, "max", 1);
}

export {
  _connectionListener, ClientRequest, createServer, IncomingMessage, METHODS, OutgoingMessage, Server,
  ServerResponse, STATUS_CODES, validateHeaderName, validateHeaderValue,
};
