// https://nodejs.org/api/http.html: requests, sent with fetch. A worker serves by its fetch handler, so there are no servers.
import { AbortController } from "../dom/abort.js";
import { Headers } from "../fetch/headers.js";
import { clearTimeout, setTimeout } from "../timers.js";
import { URL } from "../url/url.js";
import { Buffer } from "./buffer.js";
import { codedError } from "./errors.js";
import { Readable, Writable } from "./stream.js";
import { unavailable } from "./unavailable.js";
import { STATUS_CODES } from "./http_status.js";

export const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
export const maxHeaderSize = 131072;

/** Connections are kept and shared by the platform; an agent is taken and has no effect. */
export class Agent {
  constructor(options = {}) {
    this.options = options;
    this.maxSockets = options.maxSockets ?? Infinity;
  }

  destroy() {}
}

export const globalAgent = new Agent();

/** https://nodejs.org/api/http.html#class-httpincomingmessage */
export class IncomingMessage extends Readable {
  httpVersion = "1.1";
  httpVersionMajor = 1;
  httpVersionMinor = 1;
  headers = {};
  rawHeaders = [];
  statusCode = null;
  statusMessage = "";
  complete = false;

  #reader = null;

  /** Fill it with what fetch gave. */
  static from(response) {
    const message = new IncomingMessage();
    message.statusCode = response.status;
    message.statusMessage = response.statusText || STATUS_CODES[response.status] || "";
    for (const [name, value] of response.headers) {
      message.rawHeaders.push(name, value);
      if (name === "set-cookie") (message.headers[name] ??= []).push(value);
      else message.headers[name] = value;
    }
    message.#reader = response.body?.getReader() ?? null;
    return message;
  }

  _read() {
    if (this.#reader === null) {
      this.complete = true;
      this.push(null);
      return;
    }
    this.#reader.read().then(
      ({ value, done }) => {
        this.complete = done;
        this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      },
      (error) => this.destroy(error),
    );
  }

  _destroy(error, callback) {
    this.#reader?.cancel(error ?? undefined).catch(() => {});
    callback(error);
  }

  setTimeout() {
    return this;
  }
}

function toURL(options, protocol) {
  const { hostname = options.host ?? "localhost", port, path = "/" } = options;
  const host = port === undefined || port === null || `${hostname}`.includes(":") ? hostname : `${hostname}:${port}`;
  return new URL(path, `${options.protocol ?? protocol}//${host}`);
}

/** https://nodejs.org/api/http.html#class-httpclientrequest */
export class ClientRequest extends Writable {
  #headers = new Map(); // lower-case name -> [name, value]
  #chunks = [];
  #controller = new AbortController();
  #url;
  #sent = false;

  constructor(url, options, protocol, callback) {
    super({ autoDestroy: false }); // it is over when the response is, not when all is written
    this.#url = url ?? toURL(options, protocol);
    this.method = `${options.method ?? "GET"}`.toUpperCase();
    this.path = this.#url.pathname + this.#url.search;
    this.host = this.#url.hostname;
    this.protocol = this.#url.protocol;
    for (const [name, value] of Object.entries(options.headers ?? {})) this.setHeader(name, value);
    if (options.auth !== undefined) this.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    if (callback !== undefined) this.once("response", callback);
    if (options.signal !== undefined) options.signal.addEventListener("abort", () => this.destroy(options.signal.reason), { once: true });
    if (options.timeout !== undefined) this.setTimeout(options.timeout);
  }

  setHeader(name, value) {
    this.#headers.set(`${name}`.toLowerCase(), [name, value]);
    return this;
  }

  getHeader(name) {
    return this.#headers.get(`${name}`.toLowerCase())?.[1];
  }

  getHeaders() {
    return Object.fromEntries([...this.#headers].map(([name, [, value]]) => [name, value]));
  }

  hasHeader(name) {
    return this.#headers.has(`${name}`.toLowerCase());
  }

  removeHeader(name) {
    this.#headers.delete(`${name}`.toLowerCase());
  }

  get headersSent() {
    return this.#sent;
  }

  flushHeaders() {}

  setNoDelay() {}

  setSocketKeepAlive() {}

  setTimeout(delay, callback = undefined) {
    if (callback !== undefined) this.once("timeout", callback);
    if (delay > 0) {
      const timer = setTimeout(() => this.emit("timeout"), delay);
      this.once("close", () => clearTimeout(timer));
      this.once("response", () => clearTimeout(timer));
    }
    return this;
  }

  abort() {
    this.destroy();
  }

  _write(chunk, encoding, callback) {
    this.#chunks.push(chunk);
    callback();
  }

  // The body is complete: now it can be sent.
  _final(callback) {
    callback();
    this.#send().then(
      (response) => {
        response.once("close", () => this.destroy());
        this.emit("response", response);
      },
      (error) => this.destroy(error),
    );
  }

  async #send() {
    this.#sent = true;
    if (typeof globalThis.fetch !== "function") {
      throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "node:http needs fetch, which this worker does not have");
    }
    const headers = new Headers();
    for (const [name, value] of this.#headers.values()) {
      for (const each of Array.isArray(value) ? value : [value]) headers.append(name, `${each}`);
    }
    headers.delete("host");
    headers.delete("content-length");
    const hasBody = this.#chunks.length > 0 && this.method !== "GET" && this.method !== "HEAD";
    const init = { method: this.method, headers, redirect: "manual", signal: this.#controller.signal };
    if (hasBody) init.body = Buffer.concat(this.#chunks);
    return IncomingMessage.from(await globalThis.fetch(this.#url, init));
  }

  _destroy(error, callback) {
    this.#controller.abort();
    callback(error);
  }
}

/** The two forms: (url, options, callback) and (options, callback). */
export function makeRequest(protocol, [first, second, third]) {
  const isAddress = typeof first === "string" || first instanceof URL;
  const options = (isAddress ? second : first) ?? {};
  const callback = isAddress ? third : second;
  if (typeof options === "function") return new ClientRequest(new URL(first), {}, protocol, options);
  return new ClientRequest(isAddress ? new URL(first) : null, options, protocol, callback);
}

export function request(...args) {
  return makeRequest("http:", args);
}

export function get(...args) {
  return request(...args).end();
}

export const { createServer, Server, ServerResponse, OutgoingMessage } = unavailable("http", [
  "createServer", "Server", "ServerResponse", "OutgoingMessage",
]);

export { STATUS_CODES };
