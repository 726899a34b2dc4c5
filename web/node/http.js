// https://nodejs.org/api/http.html: client requests, sent with fetch. There are no servers: a worker serves with its fetch handler.
import { AbortController } from "../dom/abort.js";
import { codingOf, takesEncoded } from "../fetch/body.js";
import { Headers } from "../fetch/headers.js";
import { responseState } from "../fetch/response.js";
import { clearTimeout, setTimeout } from "../timers.js";
import { URL } from "../url/url.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument } from "./errors.js";
import { STATUS_CODES } from "./http_status.js";
import { hrefOf, toHost, toPath, toPort } from "./http_target.js";
import { Readable, Writable } from "./stream.js";
import { unavailable } from "./unavailable.js";
import { urlToHttpOptions } from "./url.js";

export const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
export const maxHeaderSize = 131072;

/** Accepted without effect: the platform pools connections itself. */
export class Agent {
  protocol = "http:";
  defaultPort = 80;

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

  /** Packages extend this class and pass a socket, which is no option of a stream. */
  constructor(socket = null) {
    super();
    this.socket = socket;
  }

  /** The message for a response of fetch. */
  static from(response) {
    const message = new IncomingMessage();
    message.statusCode = response.status;
    message.statusMessage = response.statusText || STATUS_CODES[response.status] || "";
    for (const [name, value] of response.headers) {
      message.rawHeaders.push(name, value);
      if (name === "set-cookie") (message.headers[name] ??= []).push(value);
      else message.headers[name] = value;
    }
    // Node does not decode content codings: a client that requests one decodes the body itself.
    const body = responseState(response)?.body ?? null;
    if (body !== null) takesEncoded(body, codingOf(body));
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

const TOKEN = /^[\^_`a-zA-Z\-0-9!#$%&'*+.|~]+$/;

function toMethod(method) {
  if (method === undefined || method === null || method === "") return "GET";
  if (typeof method !== "string") throw invalidArgument("options.method", "of type string", method);
  if (!TOKEN.test(method)) throw codedError(TypeError, "ERR_INVALID_HTTP_TOKEN", `Method must be a valid HTTP token ["${method}"]`);
  return method.toUpperCase();
}

/** Headers in any form that Node accepts: an object, a list of pairs, or alternating names and values. */
function* pairsOf(headers) {
  if (!Array.isArray(headers)) yield* Object.entries(headers);
  else if (Array.isArray(headers[0])) yield* headers;
  else for (let i = 0; i < headers.length; i += 2) yield [headers[i], headers[i + 1]];
}

/** Protocol, host and port. The path is separate, because it may change until the request is sent. */
function toServer(options, defaultAgent) {
  const agent = options.agent || defaultAgent;
  if (typeof agent !== "object" && typeof agent !== "function") {
    throw invalidArgument("options.agent", "one of Agent-like Object, undefined, or false", options.agent);
  }
  if (options.socketPath) throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The option socketPath of node:http is not available in a worker");
  const protocol = options.protocol || defaultAgent.protocol;
  const expected = agent.protocol || defaultAgent.protocol;
  if (protocol !== expected) throw codedError(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${protocol}" not supported. Expected "${expected}"`);
  const port = toPort(options.port || options.defaultPort || agent.defaultPort || defaultAgent.defaultPort);
  return { protocol, host: toHost(options.hostname, "hostname") || toHost(options.host, "host") || "localhost", port };
}

/** https://nodejs.org/api/http.html#class-httpclientrequest */
export class ClientRequest extends Writable {
  #headers = new Map(); // lower-case name -> [name, value]
  #chunks = [];
  #controller = new AbortController();
  #path = "/";
  #server;
  #sent = false;

  constructor(options, defaultAgent, callback) {
    super({ autoDestroy: false }); // it ends with the response, not with the last write
    if (options.path) this.path = options.path;
    this.#server = toServer(options, defaultAgent);
    this.method = toMethod(options.method);
    this.host = this.#server.host;
    this.protocol = this.#server.protocol;
    for (const [name, value] of pairsOf(options.headers ?? {})) this.#addHeader(name, value);
    if (options.auth && !this.hasHeader("Authorization")) {
      this.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    }
    if (callback !== undefined) this.once("response", callback);
    if (options.signal !== undefined) options.signal.addEventListener("abort", () => this.destroy(options.signal.reason), { once: true });
    if (options.timeout !== undefined) this.setTimeout(options.timeout);
  }

  get path() {
    return this.#path;
  }

  set path(value) {
    this.#path = toPath(value);
  }

  // A list may contain a name twice.
  #addHeader(name, value) {
    const before = this.getHeader(name);
    this.setHeader(name, before === undefined ? value : [before, value].flat());
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

  // The body is complete, so the request can be sent.
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
    const init = { method: this.method, headers, redirect: "manual", signal: this.#controller.signal };
    const body = Buffer.concat(this.#chunks);
    if (body.length > 0) init.body = body; // fetch refuses a body with GET or HEAD
    return IncomingMessage.from(await globalThis.fetch(hrefOf(this.#server, this.#path), init));
  }

  _destroy(error, callback) {
    this.#controller.abort();
    callback(error);
  }
}

/** The overloads (url, options, callback) and (options, callback). Options override the URL. */
export function makeRequest(defaultAgent, [first, second, third]) {
  const isAddress = typeof first === "string" || first instanceof URL;
  const base = isAddress ? urlToHttpOptions(typeof first === "string" ? new URL(first) : first) : {};
  const [options, callback] = isAddress ? [second, third] : [first, second];
  if (typeof options === "function") return new ClientRequest(base, defaultAgent, options);
  return new ClientRequest({ ...base, ...options }, defaultAgent, callback);
}

export function request(...args) {
  return makeRequest(globalAgent, args);
}

export function get(...args) {
  return request(...args).end();
}

export const { createServer, Server, ServerResponse, OutgoingMessage } = unavailable("http", [
  "createServer", "Server", "ServerResponse", "OutgoingMessage",
]);

export { STATUS_CODES };
