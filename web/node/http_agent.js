// https://nodejs.org/api/http.html#class-httpagent: the options of connections. The platform pools connections itself.
import { invalidArgument, invalidValue, outOfRange } from "./errors.js";
import { EventEmitter } from "./events.js";
import { defineLegacyClass } from "./legacy_class.js";

export function Agent(options = undefined) {
  if (new.target === undefined && !(this instanceof Agent)) return new Agent(options);
  EventEmitter.call(this);
  this.defaultPort = 80;
  this.protocol = "http:";
  this.options = { __proto__: null, noDelay: true, ...options };
  if (this.options.noDelay === undefined) this.options.noDelay = true;
  this.options.path = null;
  this.requests = { __proto__: null };
  this.sockets = { __proto__: null };
  this.freeSockets = { __proto__: null };
  this.keepAliveMsecs = this.options.keepAliveMsecs || 1000;
  this.keepAlive = this.options.keepAlive || false;
  this.maxSockets = this.options.maxSockets || Agent.defaultMaxSockets;
  this.maxFreeSockets = this.options.maxFreeSockets || 256;
  this.scheduling = this.options.scheduling || "lifo";
  this.maxTotalSockets = this.options.maxTotalSockets;
  this.totalSocketCount = 0;
  if (this.scheduling !== "fifo" && this.scheduling !== "lifo") {
    throw invalidValue("scheduling", this.scheduling, "must be one of: 'fifo', 'lifo'");
  }
  if (this.maxTotalSockets === undefined) this.maxTotalSockets = Infinity;
  else if (typeof this.maxTotalSockets !== "number") throw invalidArgument("maxTotalSockets", "of type number", this.maxTotalSockets);
  else if (!(this.maxTotalSockets >= 1)) throw outOfRange("maxTotalSockets", ">= 1", this.maxTotalSockets);
}

class Members extends EventEmitter {
  getName(options = {}) {
    let name = `${options.host || "localhost"}:${options.port || ""}:${options.localAddress || ""}`;
    if (options.family === 4 || options.family === 6) name += `:${options.family}`;
    if (options.socketPath) name += `:${options.socketPath}`;
    return name;
  }

  addRequest() {}

  createSocket() {}

  createConnection() {}

  removeSocket() {}

  keepSocketAlive() {
    return false;
  }

  reuseSocket() {}

  destroy() {}
}

defineLegacyClass(Agent, EventEmitter, Members);
Agent.defaultMaxSockets = Infinity;

export const globalAgent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
