// https://nodejs.org/api/http.html#class-httpclientrequest: a request that is sent with fetch.
import { AbortController } from "../dom/abort.js";
import { codingOf, takesEncoded } from "../fetch/body.js";
import { Headers } from "../fetch/headers.js";
import { responseState } from "../fetch/response.js";
import { clearTimeout, setTimeout } from "../timers.js";
import { URL } from "../url/url.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, invalidValue, requireFunction, requireString } from "./errors.js";
import { globalAgent } from "./http_agent.js";
import { _checkIsHttpToken, headersSent, optionNotImplemented } from "./http_common.js";
import { kOutHeaders } from "./http_headers.js";
import { attachBody, IncomingMessage } from "./http_incoming.js";
import { kUniqueHeaders, OutgoingMessage } from "./http_outgoing.js";
import { MessageSocket } from "./http_socket.js";
import { STATUS_CODES } from "./http_status.js";
import { hrefOf, toHost, toPath, toPort } from "./http_target.js";
import { defineLegacyClass } from "./legacy_class.js";
import { withCode } from "./net_errors.js";
import { readTimeout } from "./net_options.js";
import { nextTick } from "./process.js";
import { addAbortSignal } from "./stream.js";
import { urlToHttpOptions } from "./url.js";
import { requireBoolean, requireInteger } from "./validate.js";

const kState = Symbol("kClientState");
const kPath = Symbol("kPath");

function toMethod(method) {
  if (method !== undefined && method !== null && typeof method !== "string") throw invalidArgument("options.method", "of type string", method);
  if (!method) return "GET";
  if (!_checkIsHttpToken(method)) throw codedError(TypeError, "ERR_INVALID_HTTP_TOKEN", `Method must be a valid HTTP token ["${method}"]`);
  return method.toUpperCase();
}

/** The overloads (url, options, callback) and (options, callback). Options override the URL. */
function readArguments(input, options, callback) {
  if (typeof input === "string") input = urlToHttpOptions(new URL(input));
  else if (input instanceof URL) input = urlToHttpOptions(input);
  else [input, options, callback] = [null, input, options];
  if (typeof options === "function") return [input ?? {}, options];
  return [{ ...input, ...options }, callback];
}

function toAgent(options, defaultAgent) {
  const { agent } = options;
  if (agent === false) return new defaultAgent.constructor();
  if (agent === undefined || agent === null) return defaultAgent;
  if (typeof agent.addRequest !== "function") throw invalidArgument("options.agent", "one of Agent-like Object, undefined, or false", agent);
  return agent;
}

// Options of connections, which fetch does not have.
function refuseOptions(options) {
  if (options.maxHeaderSize !== undefined) {
    requireInteger(options.maxHeaderSize, "maxHeaderSize", 0);
    throw optionNotImplemented("options.maxHeaderSize");
  }
  if (options.insecureHTTPParser !== undefined) requireBoolean(options.insecureHTTPParser, "options.insecureHTTPParser");
  if (options.createConnection !== undefined) {
    requireFunction(options.createConnection, "options.createConnection");
    throw optionNotImplemented("options.createConnection");
  }
  if (options.lookup !== undefined) {
    requireFunction(options.lookup, "options.lookup");
    throw optionNotImplemented("options.lookup");
  }
  if (options.socketPath !== undefined) {
    requireString(options.socketPath, "options.socketPath");
    throw optionNotImplemented("options.socketPath");
  }
  if (options.joinDuplicateHeaders !== undefined) requireBoolean(options.joinDuplicateHeaders, "options.joinDuplicateHeaders");
}

function hostHeader(host, port, defaultPort) {
  const name = /:.*:/.test(host) && !host.startsWith("[") ? `[${host}]` : host;
  return port && Number(port) !== defaultPort ? `${name}:${port}` : name;
}

function setHeaders(request, options, defaultPort) {
  const { headers } = options;
  if (Array.isArray(headers)) {
    const list = Array.isArray(headers[0]) ? headers.flat() : headers;
    if (list.length % 2 !== 0) throw invalidValue("headers", headers);
    for (let i = 0; i < list.length; i += 2) request.appendHeader(list[i], list[i + 1]);
    return;
  }
  for (const [name, value] of Object.entries(headers ?? {})) request.setHeader(name, value);
  const setsHost = options.setHost === undefined ? options.setDefaultHeaders !== false : Boolean(options.setHost);
  if (setsHost && !request.getHeader("host")) request.setHeader("Host", hostHeader(request.host, request.port, defaultPort));
  if (options.auth && !request.getHeader("Authorization")) {
    request.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
  }
}

export function ClientRequest(input, options = undefined, callback = undefined) {
  if (new.target === undefined && !(this instanceof ClientRequest)) return new ClientRequest(input, options, callback);
  OutgoingMessage.call(this);
  [options, callback] = readArguments(input, options, callback);
  if (options.path) toPath(options.path);
  const defaultAgent = options._defaultAgent || globalAgent;
  this.agent = toAgent(options, defaultAgent);
  const protocol = options.protocol || defaultAgent.protocol;
  const expected = this.agent.protocol || defaultAgent.protocol;
  if (protocol !== expected) throw codedError(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${protocol}" not supported. Expected "${expected}"`);
  this.protocol = protocol;
  const defaultPort = options.defaultPort || this.agent.defaultPort || defaultAgent.defaultPort;
  this.port = toPort(options.port || defaultPort || 80);
  this.host = toHost(options.hostname, "hostname") || toHost(options.host, "host") || "localhost";
  if (options.timeout !== undefined) this.timeout = readTimeout(options.timeout, "timeout");
  this.method = toMethod(options.method);
  refuseOptions(options);
  this.joinDuplicateHeaders = options.joinDuplicateHeaders;
  this.path = options.path || "/";
  this.res = null;
  this.aborted = false;
  this.reusedSocket = false;
  this.maxHeadersCount = null;
  this.timeoutCb = null;
  this._ended = false;
  this.useChunkedEncodingByDefault = !["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT"].includes(this.method);
  this[kState] = { controller: new AbortController(), timer: null };
  this[kUniqueHeaders] = Array.isArray(options.uniqueHeaders) ? new Set(options.uniqueHeaders.flat().map((name) => name.toLowerCase())) : null;
  if (callback) this.once("response", callback);
  setHeaders(this, options, defaultPort);
  if (options.signal) addAbortSignal(options.signal, this);
  nextTick(() => {
    if (this.destroyed) return;
    this.socket = new MessageSocket(this, { encrypted: protocol === "https:", localPort: undefined, localAddress: undefined });
    this.emit("socket", this.socket);
    startTimer(this);
  });
}

function startTimer(request) {
  const state = request[kState];
  clearTimeout(state.timer);
  if (!(request.timeout > 0) || request.destroyed) return;
  state.timer = setTimeout(() => {
    request.emit("timeout");
    request.res?.emit("timeout");
    request.socket?.emit("timeout");
  }, request.timeout);
}

function close(request) {
  clearTimeout(request[kState].timer);
  request.destroyed = true;
  if (request._closed) return;
  request._closed = true;
  request.socket?._close();
  request.emit("close");
}

function hangUp(text) {
  return codedError(Error, "ECONNRESET", text);
}

function toResponse(request, response) {
  const message = new IncomingMessage();
  message.httpVersionMajor = 1;
  message.httpVersionMinor = 1;
  message.httpVersion = "1.1";
  message.statusCode = response.status;
  message.statusMessage = response.statusText || STATUS_CODES[response.status] || "";
  message.joinDuplicateHeaders = request.joinDuplicateHeaders;
  const raw = [];
  for (const [name, value] of response.headers) raw.push(name, value);
  message._addHeaderLines(raw, raw.length);
  // Node does not decode content codings: a client that requests one decodes the body itself.
  const body = responseState(response)?.body ?? null;
  if (body !== null) takesEncoded(body, codingOf(body));
  attachBody(message, response.body, () => request.socket);
  message.req = request;
  return message;
}

function onResponse(request, response) {
  if (request.destroyed) {
    response.body?.cancel().catch(() => {});
    return;
  }
  const message = toResponse(request, response);
  request.res = message;
  startTimer(request);
  message.once("close", () => close(request));
  if (!request.emit("response", message)) message._dump();
}

function fail(request, error) {
  if (request._closed) return;
  const wasDestroyed = request.destroyed;
  request.destroyed = true;
  nextTick(() => {
    const reason = wasDestroyed ? request.errored : withCode(error);
    if (request.res === null) request.emit("error", reason ?? hangUp("socket hang up"));
    close(request);
  });
}

async function send(request) {
  if (typeof globalThis.fetch !== "function") {
    throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "node:http needs fetch, which this worker does not have");
  }
  const headers = new Headers();
  for (const [name, value] of Object.values(request[kOutHeaders] ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) headers.append(name, `${each}`);
  }
  headers.delete("host");
  headers.delete("content-length");
  headers.delete("transfer-encoding");
  const init = { method: request.method, headers, redirect: "manual", signal: request[kState].controller.signal };
  const body = Buffer.concat(request.outputData.map(({ data }) => data));
  if (body.length > 0) init.body = body; // fetch refuses a body with GET or HEAD
  return globalThis.fetch(hrefOf(request, request.path), init);
}

class Members extends OutgoingMessage {
  get path() {
    return this[kPath];
  }

  set path(value) {
    this[kPath] = toPath(value);
  }

  _implicitHeader() {
    if (this._header) throw headersSent("render");
    this._storeHeader(`${this.method} ${this.path} HTTP/1.1\r\n`, this[kOutHeaders]);
  }

  end(...args) {
    const isFirst = !this.finished;
    super.end(...args);
    this._ended = true;
    return isFirst ? dispatch(this) : this;
  }

  // The head is sent together with the body.
  _finish() {}

  // All data is kept until end(), so each write is taken at once: packages wait for its callback, or for "drain".
  _writeRaw(data, encoding = undefined, callback = undefined) {
    const more = super._writeRaw(data, encoding);
    if (callback && !this.destroyed) nextTick(callback);
    if (!more) nextTick(() => this._drain());
    return more;
  }

  abort() {
    if (this.aborted) return;
    this.aborted = true;
    nextTick(() => this.emit("abort"));
    this.destroy();
  }

  destroy(error = undefined) {
    if (this.destroyed) return this;
    super.destroy(error);
    this[kState].controller.abort();
    if (this.res !== null) {
      if (!this.res.complete) this.res.destroy(error ?? hangUp("aborted"));
      nextTick(close, this);
    } else fail(this, error);
    return this;
  }

  setTimeout(msecs, callback = undefined) {
    if (this._ended && this._closed) return this;
    this.timeout = readTimeout(msecs, "msecs");
    if (callback) this.once("timeout", callback);
    startTimer(this);
    return this;
  }

  clearTimeout(callback = undefined) {
    return this.setTimeout(0, callback);
  }

  setNoDelay() {}

  setSocketKeepAlive() {}

  onSocket() {}
}

function dispatch(request) {
  nextTick(() => {
    if (request.destroyed) return;
    request.emit("prefinish");
    const sent = send(request);
    request.outputData = [];
    request.outputSize = 0;
    request.emit("finish");
    sent.then(
      (response) => onResponse(request, response),
      (error) => fail(request, error),
    );
  });
  return request;
}

defineLegacyClass(ClientRequest, OutgoingMessage, Members);
