// https://nodejs.org/api/dgram.html: sockets that send and receive nothing, as on Cloudflare: there is no UDP.
import { requireFunction } from "./errors.js";
import { EventEmitter } from "./events.js";
import { requireOptions } from "./validate.js";

export class Socket extends EventEmitter {
  constructor(type, listener = undefined) {
    super();
    if (typeof type !== "string") requireOptions(type, "options");
    this.type = typeof type === "string" ? type : type.type;
    if (listener !== undefined) {
      requireFunction(listener, "listener");
      this.on("message", listener);
    }
  }

  address() {
    return {};
  }

  remoteAddress() {
    return {};
  }

  async [Symbol.asyncDispose]() {}
}

const define = (name, value) => Object.defineProperty(Socket.prototype, name, { value, writable: true, configurable: true });

for (const name of ["bind", "close", "ref", "unref"]) {
  define(name, function () {
    return this;
  });
}
for (const name of ["getRecvBufferSize", "getSendBufferSize", "getSendQueueCount", "getSendQueueSize"]) define(name, () => 0);
for (const name of [
  "addMembership", "addSourceSpecificMembership", "connect", "disconnect", "dropMembership", "dropSourceSpecificMembership", "send",
  "sendto", "setBroadcast", "setMulticastInterface", "setMulticastLoopback", "setMulticastTTL", "setRecvBufferSize",
  "setSendBufferSize", "setTTL",
]) {
  define(name, () => {});
}

export function createSocket(type, listener = undefined) {
  return new Socket(type, listener);
}
