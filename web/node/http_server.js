// https://nodejs.org/api/http.html#class-httpserver: a server serves the requests that `cloudflare:node` passes to its port.
import { URL } from "../url/url.js";
import { codedError, invalidValue, outOfRange, requireFunction, requireObject, shown } from "./errors.js";
import { EventEmitter } from "./events.js";
import { _checkInvalidHeaderChar, chunkExpression, headersSent, invalidCharacter, notImplemented, optionNotImplemented } from "./http_common.js";
import { kOutHeaders } from "./http_headers.js";
import { attachBody, closeSocket, IncomingMessage } from "./http_incoming.js";
import { kSink, kUniqueHeaders, OutgoingMessage } from "./http_outgoing.js";
import { ResponseSink } from "./http_sink.js";
import { STATUS_CODES } from "./http_status.js";
import { MessageSocket } from "./http_socket.js";
import { defineLegacyClass } from "./legacy_class.js";
import { requirePort } from "./net_addresses.js";
import { normalizeArgs } from "./net_options.js";
import { nextTick } from "./process.js";
import { requireBoolean, requireInteger } from "./validate.js";

/** https://nodejs.org/api/http.html#class-httpserverresponse */
export function ServerResponse(request, options = undefined) {
  if (new.target === undefined && !(this instanceof ServerResponse)) return new ServerResponse(request, options);
  OutgoingMessage.call(this, options);
  if (request.method === "HEAD") this._hasBody = false;
  this.req = request;
  this.sendDate = true;
  this._sent100 = false;
  this._expect_continue = false;
  if (request.httpVersionMajor < 1 || request.httpVersionMinor < 1) {
    this.useChunkedEncodingByDefault = chunkExpression.test(request.headers?.te);
    this.shouldKeepAlive = false;
  }
}

// Headers given to writeHead() replace those set before.
function merge(response, headers) {
  if (!Array.isArray(headers)) {
    for (const name of Object.keys(headers)) if (name) response.setHeader(name, headers[name]);
    return;
  }
  const list = Array.isArray(headers[0]) ? headers.flat() : headers;
  if (list.length % 2 !== 0) throw invalidValue("headers", headers);
  for (let i = 0; i < list.length; i += 2) response.removeHeader(list[i]);
  for (let i = 0; i < list.length; i += 2) if (list[i]) response.appendHeader(list[i], list[i + 1]);
}

class ResponseMembers extends OutgoingMessage {
  assignSocket(socket) {
    if (socket._httpMessage) throw codedError(Error, "ERR_HTTP_SOCKET_ASSIGNED", "ServerResponse has an already assigned socket");
    socket._httpMessage = this;
    this.socket = socket;
    this.emit("socket", socket);
    this._flush();
  }

  detachSocket(socket) {
    socket._httpMessage = null;
    this.socket = null;
  }

  writeContinue() {
    throw notImplemented("writeContinue");
  }

  writeProcessing() {
    throw notImplemented("writeProcessing");
  }

  writeEarlyHints() {
    throw notImplemented("writeEarlyHints");
  }

  _implicitHeader() {
    this.writeHead(this.statusCode);
  }

  writeHead(statusCode, reason = undefined, headers = undefined) {
    if (this._header) throw headersSent("write");
    const status = statusCode | 0;
    if (status < 200 || status > 999) throw codedError(RangeError, "ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${shown(statusCode)}`);
    if (typeof reason === "string") this.statusMessage = reason;
    else {
      this.statusMessage ||= STATUS_CODES[status] || "unknown";
      headers ??= reason;
    }
    this.statusCode = status;
    if (this[kOutHeaders] !== null && headers) merge(this, headers);
    if (_checkInvalidHeaderChar(this.statusMessage)) throw invalidCharacter("statusMessage");
    if (status === 204 || status === 304) this._hasBody = false;
    this._storeHeader(`HTTP/1.1 ${status} ${this.statusMessage}\r\n`, this[kOutHeaders] ?? headers);
    return this;
  }
}

ResponseMembers.prototype.writeHeader = ResponseMembers.prototype.writeHead;

defineLegacyClass(ServerResponse, OutgoingMessage, ResponseMembers);
ServerResponse.prototype.statusCode = 200;
ServerResponse.prototype.statusMessage = undefined;

const ports = new Map(); // port -> server, of this isolate

/** The server that listens on a port. */
export function serverOn(port) {
  return ports.get(port);
}

export const kIncomingMessage = Symbol("IncomingMessage");
export const kServerResponse = Symbol("ServerResponse");
const kPort = Symbol("kPort");

/** https://github.com/nodejs/node/blob/main/lib/_http_server.js: the options of a server. */
export function storeHTTPOptions(options) {
  this[kIncomingMessage] = options.IncomingMessage || IncomingMessage;
  this[kServerResponse] = options.ServerResponse || ServerResponse;
  const { maxHeaderSize, insecureHTTPParser, requestTimeout, headersTimeout, keepAliveTimeout, connectionsCheckingInterval } = options;
  if (maxHeaderSize !== undefined) {
    requireInteger(maxHeaderSize, "maxHeaderSize", 0);
    throw optionNotImplemented("maxHeaderSize");
  }
  if (insecureHTTPParser !== undefined) {
    requireBoolean(insecureHTTPParser, "options.insecureHTTPParser");
    throw optionNotImplemented("insecureHTTPParser");
  }
  if (requestTimeout !== undefined) requireInteger(requestTimeout, "requestTimeout", 0);
  this.requestTimeout = requestTimeout ?? 300_000;
  if (headersTimeout !== undefined) requireInteger(headersTimeout, "headersTimeout", 0);
  this.headersTimeout = headersTimeout ?? Math.min(60_000, this.requestTimeout);
  if (this.requestTimeout > 0 && this.headersTimeout > this.requestTimeout) throw outOfRange("headersTimeout", "<= requestTimeout", headersTimeout);
  if (keepAliveTimeout !== undefined) {
    requireInteger(keepAliveTimeout, "keepAliveTimeout", 0);
    throw optionNotImplemented("keepAliveTimeout");
  }
  if (connectionsCheckingInterval !== undefined) {
    requireInteger(connectionsCheckingInterval, "connectionsCheckingInterval", 0);
    throw optionNotImplemented("connectionsCheckingInterval");
  }
  for (const [name, preset] of [["requireHostHeader", true], ["joinDuplicateHeaders", false], ["rejectNonStandardBodyWrites", false]]) {
    if (options[name] !== undefined) requireBoolean(options[name], `options.${name}`);
    this[name] = options[name] ?? preset;
  }
}

export function Server(options = undefined, listener = undefined) {
  if (new.target === undefined && !(this instanceof Server)) return new Server(options, listener);
  EventEmitter.call(this);
  if (typeof options === "function") [options, listener] = [{}, options];
  else if (options === undefined || options === null) options = {};
  else requireObject(options, "options");
  this.httpAllowHalfOpen = false;
  this.timeout = 0;
  this.maxHeadersCount = null;
  this.maxRequestsPerSocket = 0;
  this.connectionsCheckingInterval = 30_000;
  this.keepAliveTimeout = 5_000;
  storeHTTPOptions.call(this, options);
  if (listener) this.on("request", listener);
  this[kUniqueHeaders] = Array.isArray(options.uniqueHeaders) ? new Set(options.uniqueHeaders.flat().map((name) => name.toLowerCase())) : null;
  this[kPort] = null;
}

function freePort() {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = 1024 + Math.floor(Math.random() * 64512);
    if (!ports.has(port)) return port;
  }
  throw codedError(Error, "EADDRINUSE", "listen EADDRINUSE: no port is free");
}

// Header names and values as Node gets them: Host once, and a body has a length or a transfer coding.
function rawHeadersOf(request, url) {
  const raw = [];
  let hasHost = false;
  let hasLength = false;
  for (const [name, value] of request.headers) {
    if (name === "content-length" || name === "transfer-encoding") hasLength = true;
    if (name === "host") hasHost = true;
    raw.push(name, name === "host" ? value.split(", ", 1)[0] : value);
  }
  if (!hasHost) raw.unshift("host", url.host);
  if (request.body !== null && !hasLength) raw.push("transfer-encoding", "chunked");
  return raw;
}

function toIncoming(server, request, env, ctx) {
  const url = new URL(request.url);
  const raw = rawHeadersOf(request, url);
  const incoming = new server[kIncomingMessage]();
  incoming.httpVersionMajor = 1;
  incoming.httpVersionMinor = 1;
  incoming.httpVersion = "1.1";
  incoming.joinDuplicateHeaders = server.joinDuplicateHeaders;
  incoming.url = url.pathname + url.search;
  incoming.method = request.method;
  incoming.cloudflare = { cf: request.cf, env, ctx };
  incoming._addHeaderLines(raw, raw.length);
  const localPort = server[kPort];
  attachBody(incoming, request.body, () => new MessageSocket(incoming, { encrypted: url.protocol === "https:", localPort, localAddress: url.hostname }));
  return incoming;
}

function closeBoth(incoming, response) {
  response.destroyed = true;
  if (response._closed) return;
  response._closed = true;
  response.emit("close");
  closeSocket(incoming);
}

/** Answers a Request of fetch. */
export async function serve(server, request, env = undefined, ctx = undefined) {
  const incoming = toIncoming(server, request, env, ctx);
  const response = new server[kServerResponse](incoming, { rejectNonStandardBodyWrites: server.rejectNonStandardBodyWrites });
  const sink = new ResponseSink(response);
  response[kSink] = sink;
  response[kUniqueHeaders] = server[kUniqueHeaders];
  Object.defineProperty(response, "socket", { get: () => incoming.socket, set: () => {}, configurable: true, enumerable: true });
  const destroy = sink.destroy.bind(sink);
  sink.destroy = (error) => {
    destroy(error);
    nextTick(closeBoth, incoming, response);
  };
  response.once("finish", () => {
    incoming._dump();
    nextTick(closeBoth, incoming, response);
  });
  try {
    if (server.listenerCount("connection") > 0) server.emit("connection", incoming.socket);
    if (/100-continue/i.test(incoming.headers.expect ?? "") && server.listenerCount("checkContinue") > 0) server.emit("checkContinue", incoming, response);
    else server.emit("request", incoming, response);
  } catch (error) {
    response.destroy(error);
    throw error;
  }
  return sink.response;
}

class ServerMembers extends EventEmitter {
  /** https://nodejs.org/api/http.html#serverlisten: registers the port within this isolate. */
  listen(...args) {
    const [options, callback] = normalizeArgs(typeof args[0] === "function" ? [{}, args[0]] : args);
    const hasPort = typeof options.port === "number" || typeof options.port === "string";
    const port = hasPort ? requirePort(options.port, "options.port") : 0;
    if (this[kPort] !== null || ports.has(port)) {
      throw codedError(Error, "ERR_SERVER_ALREADY_LISTEN", "Listen method has been called more than once without closing.");
    }
    if (callback !== null) this.once("listening", callback);
    this[kPort] = port === 0 ? freePort() : port;
    ports.set(this[kPort], this);
    nextTick(() => this.emit("listening"));
    return this;
  }

  close(callback = undefined) {
    if (typeof callback === "function") {
      const isOpen = this[kPort] !== null;
      this.once("close", () => (isOpen ? callback() : callback(codedError(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running."))));
    }
    if (this[kPort] !== null) ports.delete(this[kPort]);
    this[kPort] = null;
    nextTick(() => this.emit("close"));
    return this;
  }

  closeAllConnections() {}

  closeIdleConnections() {}

  setTimeout(msecs, callback = undefined) {
    if (typeof msecs === "function") callback = msecs;
    else if (typeof msecs === "number") this.timeout = msecs;
    if (typeof callback === "function") this.on("timeout", callback);
    return this;
  }

  getConnections(callback = undefined) {
    if (callback) {
      requireFunction(callback, "callback");
      nextTick(callback, null, 0);
    }
    return this;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }

  get listening() {
    return this[kPort] !== null;
  }

  address() {
    return this[kPort] === null ? null : { port: this[kPort], family: "IPv4", address: "127.0.0.1" };
  }

  get maxConnections() {
    return Infinity;
  }

  get connections() {
    return 0;
  }

  [Symbol.asyncDispose]() {
    return new Promise((resolve) => this.close(() => resolve()));
  }
}

defineLegacyClass(Server, EventEmitter, ServerMembers);

export function createServer(options, listener) {
  return new Server(options, listener);
}

export function _connectionListener() {
  throw notImplemented("_connectionListener");
}

export function setupConnectionsTracking() {
  throw notImplemented("setupConnectionsTracking");
}

export function httpServerPreClose(server) {
  server.closeIdleConnections();
}

export { STATUS_CODES };
