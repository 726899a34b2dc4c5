// https://nodejs.org/api/http.html#class-httpincomingmessage: a request that a server receives, or a response to a client.
import { Buffer } from "./buffer.js";
import { defineLegacyClass } from "./legacy_class.js";
import { nextTick } from "./process.js";
import { Readable } from "./stream.js";

const kHeaders = Symbol("kHeaders");
const kDistinct = Symbol("kHeadersDistinct");
const kTrailers = Symbol("kTrailers");
const kTrailersDistinct = Symbol("kTrailersDistinct");
const kReader = Symbol("kReader");
const kMakeSocket = Symbol("kMakeSocket");
const kSocket = Symbol("kSocket");

// Headers of which only the first counts. All others are joined with ", ", except cookies.
const SINGLE = new Set([
  "age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since",
  "if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer", "retry-after", "server",
  "user-agent",
]);

export function IncomingMessage(socket = undefined) {
  if (new.target === undefined && !(this instanceof IncomingMessage)) return new IncomingMessage(socket);
  Readable.call(this, socket?.readableHighWaterMark === undefined ? {} : { highWaterMark: socket.readableHighWaterMark });
  this[kSocket] = socket;
  this[kReader] = null;
  this[kMakeSocket] = null;
  this[kHeaders] = null;
  this[kDistinct] = null;
  this[kTrailers] = null;
  this[kTrailersDistinct] = null;
  this.httpVersionMajor = null;
  this.httpVersionMinor = null;
  this.httpVersion = null;
  this.complete = false;
  this.rawHeaders = [];
  this.rawTrailers = [];
  this.joinDuplicateHeaders = false;
  this.aborted = false;
  this.upgrade = null;
  this.url = "";
  this.method = null;
  this.statusCode = null;
  this.statusMessage = null;
  this.client = socket;
  this._consuming = false;
  this._dumped = false;
}

/** For servers and clients: the body is read from `stream`, a ReadableStream or null; `makeSocket()` creates the socket on first use. */
export function attachBody(message, stream, makeSocket = null) {
  message[kReader] = stream?.getReader() ?? null;
  message[kMakeSocket] = makeSocket;
}

/** The message is finished: its socket, if anyone asked for it, closes. */
export function closeSocket(message) {
  message[kSocket]?._close?.();
}

function addDistinct(to, field, value) {
  const name = field.toLowerCase();
  if (Object.hasOwn(to, name)) to[name].push(value);
  else to[name] = [value];
}

async function pump(message) {
  const reader = message[kReader];
  try {
    const { value, done } = await reader.read();
    if (message.destroyed || message.readableEnded || message._dumped) return;
    if (done) {
      message.complete = true;
      message.push(null);
    } else message.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
  } catch (error) {
    message.destroy(error);
  }
}

function collect(message, add) {
  const found = {};
  const { rawHeaders } = message;
  for (let i = 0; i < rawHeaders.length; i += 2) add.call(message, rawHeaders[i], rawHeaders[i + 1], found);
  return found;
}

class Members extends Readable {
  _read() {
    this._consuming = true;
    if (this[kReader] !== null) pump(this);
    else if (this[kMakeSocket] !== null || this.complete) {
      this.complete = true;
      this.push(null);
    }
  }

  _destroy(error, callback) {
    if (!this.readableEnded || !this.complete) {
      this.aborted = true;
      this.emit("aborted");
    }
    this[kReader]?.cancel(error ?? undefined).catch(() => {});
    // As in Node, an error without listeners is no event.
    nextTick(() => callback(this.listenerCount("error") > 0 ? error : null));
  }

  /** Reads the rest of the body and drops it. */
  _dump() {
    if (this._dumped) return;
    this._dumped = true;
    this.removeAllListeners("data");
    this[kReader]?.cancel().catch(() => {});
    if (!this.readableEnded && !this.destroyed && !this.complete) {
      this.complete = true;
      this.push(null);
    }
    this.resume();
  }

  _addHeaderLine(field, value, to) {
    const name = field.toLowerCase();
    if (name === "set-cookie") (to[name] ??= []).push(value);
    else if (!Object.hasOwn(to, name)) to[name] = value;
    else if (this.joinDuplicateHeaders || !SINGLE.has(name)) to[name] += (name === "cookie" ? "; " : ", ") + value;
  }

  _addHeaderLineDistinct(field, value, to) {
    addDistinct(to, field, value);
  }

  _addHeaderLines(headers, count) {
    if (!Array.isArray(headers) || headers.length === 0) return;
    if (this.complete) {
      this.rawTrailers = headers;
      this[kTrailers] = null;
      return;
    }
    this.rawHeaders = headers;
    if (this[kHeaders]) for (let i = 0; i < count; i += 2) this._addHeaderLine(headers[i], headers[i + 1], this[kHeaders]);
  }

  get headers() {
    return (this[kHeaders] ??= collect(this, this._addHeaderLine));
  }

  set headers(value) {
    this[kHeaders] = value;
  }

  get headersDistinct() {
    return (this[kDistinct] ??= collect(this, this._addHeaderLineDistinct));
  }

  set headersDistinct(value) {
    this[kDistinct] = value;
  }

  get trailers() {
    return (this[kTrailers] ??= {});
  }

  set trailers(value) {
    this[kTrailers] = value;
  }

  get trailersDistinct() {
    return (this[kTrailersDistinct] ??= {});
  }

  set trailersDistinct(value) {
    this[kTrailersDistinct] = value;
  }

  get socket() {
    if (this[kSocket] === undefined && this[kMakeSocket]) this[kSocket] = this[kMakeSocket](this);
    return this[kSocket];
  }

  set socket(value) {
    this[kSocket] = value;
  }

  get connection() {
    return this.socket;
  }

  set connection(value) {
    this[kSocket] = value;
  }

  setTimeout(msecs, callback = undefined) {
    if (callback) this.on("timeout", callback);
    this.socket?.setTimeout?.(msecs);
    return this;
  }
}

defineLegacyClass(IncomingMessage, Readable, Members);

/** https://github.com/nodejs/node/blob/main/lib/_http_incoming.js */
export function readStart(socket) {
  if (socket?.readable) socket.resume();
}

export function readStop(socket) {
  socket?.pause();
}
