// The socket of a message of node:http. There is no connection behind it: it tells addresses and passes on events.
import { isIPv4 } from "./net_addresses.js";
import { EventEmitter } from "./events.js";
import { nextTick } from "./process.js";

export class MessageSocket extends EventEmitter {
  connecting = false;
  destroyed = false;
  pending = false;
  timeout = 0;
  bytesRead = 0;
  bytesWritten = 0;
  writableLength = 0;
  #message;
  #remotePort = undefined;

  constructor(message, { encrypted, localPort, localAddress }) {
    super();
    this.#message = message;
    this.encrypted = encrypted;
    this.localPort = localPort;
    this.localAddress = localAddress;
    if (!encrypted) delete this.encrypted; // as in Node, only sockets of TLS have it
  }

  get readable() {
    return !this.destroyed;
  }

  get writable() {
    return !this.destroyed;
  }

  get readyState() {
    return this.destroyed ? "closed" : "open";
  }

  /** Of a server's request: the client. A request of a client does not know which address answered. */
  get remoteAddress() {
    const { headers } = this.#message;
    return this.destroyed || headers === undefined ? undefined : (headers["cf-connecting-ip"] ?? "127.0.0.1");
  }

  get remoteFamily() {
    if (this.remoteAddress === undefined) return undefined;
    return isIPv4(this.remoteAddress) ? "IPv4" : "IPv6";
  }

  /** One of the ports that clients use: the real one is not known here. */
  get remotePort() {
    if (this.destroyed) return undefined;
    return (this.#remotePort ??= 32768 + Math.floor(Math.random() * 32768));
  }

  address() {
    return { address: this.localAddress, family: "IPv4", port: this.localPort };
  }

  destroy(error = undefined) {
    if (this.destroyed) return this;
    this.#message.destroy(error);
    this._close();
    return this;
  }

  _close() {
    if (this.destroyed) return;
    this.destroyed = true;
    nextTick(() => this.emit("close", false));
  }

  destroySoon() {
    this.destroy();
  }

  end() {
    return this;
  }

  write() {
    return true;
  }

  setTimeout(msecs, callback = undefined) {
    this.timeout = msecs;
    if (callback) this.once("timeout", callback);
    return this;
  }
}

// Methods that concern a connection have no effect.
for (const name of ["cork", "uncork", "pause", "resume", "ref", "unref", "setKeepAlive", "setNoDelay", "setEncoding"]) {
  Object.defineProperty(MessageSocket.prototype, name, {
    value() {
      return this;
    },
    writable: true,
    configurable: true,
  });
}
