// https://nodejs.org/api/https.html
import { URL } from "../url/url.js";
import { Agent as HttpAgent } from "./http_agent.js";
import { ClientRequest } from "./http_client.js";
import { notImplemented } from "./http_common.js";
import { Server as HttpServer } from "./http_server.js";
import { defineLegacyClass } from "./legacy_class.js";

export function Agent(options = undefined) {
  if (new.target === undefined && !(this instanceof Agent)) return new Agent(options);
  HttpAgent.call(this, options);
  this.defaultPort = 443;
  this.protocol = "https:";
  this.maxCachedSessions = this.options.maxCachedSessions ?? 100;
}

// Options of TLS that tell connections apart, in Node's order.
const KEYS = [
  "ca", "cert", "clientCertEngine", "ciphers", "key", "pfx", "rejectUnauthorized", "servername", "minVersion", "maxVersion",
  "secureProtocol", "crl", "honorCipherOrder", "ecdhCurve", "dhparam", "secureOptions", "sessionIdContext", "sigalgs",
];

class AgentMembers extends HttpAgent {
  getName(options = {}) {
    let name = HttpAgent.prototype.getName.call(this, options);
    for (const key of KEYS) {
      const value = options[key];
      name += ":";
      if (key === "servername" ? value && value !== options.host : key === "rejectUnauthorized" ? value !== undefined : value) {
        name += key === "pfx" && Array.isArray(value) ? value.join() : value;
      }
    }
    name += ":";
    if (options.privateKeyIdentifier) name += options.privateKeyIdentifier;
    name += ":";
    if (options.privateKeyEngine) name += options.privateKeyEngine;
    return name;
  }
}

defineLegacyClass(Agent, HttpAgent, AgentMembers);

export const globalAgent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });

export function Server(options = undefined, listener = undefined) {
  if (new.target === undefined && !(this instanceof Server)) return new Server(options, listener);
  HttpServer.call(this, options, listener);
}

class ServerMembers extends HttpServer {
  addContext() {
    throw notImplemented("addContext");
  }

  getTicketKeys() {
    throw notImplemented("getTicketKeys");
  }

  setSecureContext() {
    throw notImplemented("setSecureContext");
  }

  setTicketKeys() {
    throw notImplemented("setTicketKeys");
  }
}

defineLegacyClass(Server, HttpServer, ServerMembers);

export function createServer(options, listener) {
  return new Server(options, listener);
}

// (url, options, callback) or (options, callback), with the agent of https as the default.
function send(input, options, callback) {
  if (typeof input === "string" || input instanceof URL) {
    if (typeof options === "function") [options, callback] = [{}, options];
    return new ClientRequest(input, { _defaultAgent: globalAgent, ...options }, callback);
  }
  return new ClientRequest({ _defaultAgent: globalAgent, ...input }, options);
}

export function request(...args) {
  return send(...args);
}

export function get(...args) {
  return send(...args).end();
}
