// The headers of an outgoing message of node:http: what setHeader() and its relatives collect, and the head made of them.
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, invalidValue, requireString } from "./errors.js";
import { _checkInvalidHeaderChar, headersSent, invalidCharacter, validateHeaderName, validateHeaderValue } from "./http_common.js";
import { Stream } from "./stream.js";

export const kOutHeaders = Symbol("kOutHeaders"); // lower-case name -> [name, value], or null
export const kSent = Symbol("kSentHeaders"); // names and values of the rendered head

/** The methods of an OutgoingMessage for its headers. */
export class HeaderMethods extends Stream {
  setHeader(name, value) {
    if (this._header) throw headersSent("set");
    validateHeaderName(name);
    validateHeaderValue(name, value);
    this[kOutHeaders] ??= { __proto__: null };
    this[kOutHeaders][name.toLowerCase()] = [name, value];
    return this;
  }

  setHeaders(headers) {
    if (this._header) throw headersSent("set");
    if (!headers || Array.isArray(headers) || typeof headers.keys !== "function" || typeof headers.get !== "function") {
      throw invalidArgument("headers", "an instance of Headers or Map", headers);
    }
    const cookies = [];
    for (const [name, value] of headers) {
      if (name !== "set-cookie") this.setHeader(name, value);
      else if (Array.isArray(value)) cookies.push(...value);
      else cookies.push(value);
    }
    if (cookies.length > 0) this.setHeader("set-cookie", cookies);
    return this;
  }

  appendHeader(name, value) {
    if (this._header) throw headersSent("append");
    validateHeaderName(name);
    validateHeaderValue(name, value);
    const entry = this[kOutHeaders]?.[name.toLowerCase()];
    if (entry === undefined) return this.setHeader(name, value);
    entry[1] = [entry[1], value].flat();
    return this;
  }

  getHeader(name) {
    requireString(name, "name");
    return this[kOutHeaders]?.[name.toLowerCase()]?.[1];
  }

  getHeaders() {
    const all = { __proto__: null };
    for (const [key, [, value]] of Object.entries(this[kOutHeaders] ?? {})) all[key] = value;
    return all;
  }

  getHeaderNames() {
    return Object.keys(this[kOutHeaders] ?? {});
  }

  getRawHeaderNames() {
    return Object.values(this[kOutHeaders] ?? {}).map(([name]) => name);
  }

  hasHeader(name) {
    requireString(name, "name");
    return this[kOutHeaders]?.[name.toLowerCase()] !== undefined;
  }

  removeHeader(name) {
    requireString(name, "name");
    if (this._header) throw headersSent("remove");
    const key = name.toLowerCase();
    if (key === "connection") this._removedConnection = true;
    else if (key === "content-length") this._removedContLen = true;
    else if (key === "transfer-encoding") this._removedTE = true;
    else if (key === "date") this.sendDate = false;
    if (this[kOutHeaders] !== null) delete this[kOutHeaders][key];
  }

  addTrailers(headers) {
    this._trailer = "";
    const isList = Array.isArray(headers);
    for (const key of Object.keys(headers)) {
      const [field, value] = isList ? headers[key] : [key, headers[key]];
      validateHeaderName(field, "Trailer name");
      for (const each of Array.isArray(value) && value.length > 1 ? value : [value]) {
        if (_checkInvalidHeaderChar(each)) throw invalidCharacter("trailer content", field);
        this._trailer += `${field}: ${each}\r\n`;
      }
    }
  }
}

function* pairsOf(headers) {
  if (!Array.isArray(headers)) {
    for (const name of Object.keys(headers)) yield [name, headers[name]];
  } else if (Array.isArray(headers[0])) yield* headers;
  else {
    if (headers.length % 2 !== 0) throw invalidValue("headers", headers);
    for (let i = 0; i < headers.length; i += 2) yield [headers[i], headers[i + 1]];
  }
}

// Node reads this value as bytes if the length of the body is known.
function asBytes(value) {
  return Array.isArray(value) ? value.map((each) => Buffer.from(each, "latin1").toString()) : Buffer.from(value, "latin1").toString();
}

/** Makes the head: `message._header`, a text, and `message[kSent]`, the names and values. */
export function renderHead(message, firstLine, headers, unique) {
  const sent = [];
  const found = new Set();
  const put = (name, value, isChecked) => {
    if (!isChecked) validateHeaderValue(name, value);
    const key = name.toLowerCase();
    found.add(key);
    if (key === "content-length") message._contentLength = Number(value);
    if (key === "connection") message._last = !/(?:^|\W)(keep-alive|upgrade)(?:$|\W)/i.test(value);
    if (key === "transfer-encoding") message.chunkedEncoding = /(?:^|\W)chunked(?:$|\W)/i.test(value);
    sent.push(name, `${value}`);
  };
  const isOwn = headers === message[kOutHeaders];
  for (const [name, given] of headers === null || headers === undefined ? [] : isOwn ? Object.values(headers) : pairsOf(headers)) {
    if (!isOwn) validateHeaderName(name);
    const key = name.toLowerCase();
    const value = key === "content-disposition" && message._contentLength ? asBytes(given) : given;
    if (!Array.isArray(value)) put(name, value, isOwn);
    else if (key === "cookie" || unique?.has(key)) put(name, value.join("; "), isOwn);
    else for (const each of value) put(name, each, isOwn);
  }
  const extra = [];
  let length = null;
  if (message.sendDate && !found.has("date")) extra.push("Date", new Date().toUTCString());
  if (!message._removedConnection && !found.has("connection")) extra.push("Connection", message.shouldKeepAlive ? "keep-alive" : "close");
  if (!found.has("content-length") && !found.has("transfer-encoding")) {
    if (!message._hasBody) message.chunkedEncoding = false;
    else if (!message.useChunkedEncodingByDefault) message._last = true;
    else if (!found.has("trailer") && !message._removedContLen && typeof message._contentLength === "number") {
      length = `${message._contentLength}`;
      extra.push("Content-Length", length);
    } else if (!message._removedTE) {
      extra.push("Transfer-Encoding", "chunked");
      message.chunkedEncoding = true;
    } else message._last = true;
  }
  if (message.chunkedEncoding !== true && found.has("trailer")) {
    throw codedError(Error, "ERR_HTTP_TRAILER_INVALID", "Trailers are invalid with this transfer encoding");
  }
  let text = firstLine;
  for (const list of [sent, extra]) for (let i = 0; i < list.length; i += 2) text += `${list[i]}: ${list[i + 1]}\r\n`;
  message._header = `${text}\r\n`;
  message[kSent] = length === null ? sent : [...sent, "Content-Length", length];
}
