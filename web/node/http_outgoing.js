// https://nodejs.org/api/http.html#class-httpoutgoingmessage: what servers and clients send. Headers are in http_headers.js.
import { Headers } from "../fetch/headers.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument } from "./errors.js";
import { HeaderMethods, kOutHeaders, kSent, renderHead } from "./http_headers.js";
import { headersSent, notImplemented } from "./http_common.js";
import { defineLegacyClass } from "./legacy_class.js";
import { nextTick } from "./process.js";
import { getDefaultHighWaterMark, Stream } from "./stream.js";

export const kSink = Symbol("kSink"); // takes head and body once there is one
const kCorked = Symbol("corked");
const kErrored = Symbol("kErrored");
const kHighWaterMark = Symbol("kHighWaterMark");
export const kNeedDrain = Symbol("kNeedDrain");
export const kUniqueHeaders = Symbol("kUniqueHeaders");
export const kRejectsBody = Symbol("kRejectNonStandardBodyWrites");

export function OutgoingMessage(options = undefined) {
  if (new.target === undefined && !(this instanceof OutgoingMessage)) return new OutgoingMessage(options);
  Stream.call(this);
  this.outputData = []; // writes that wait for the sink: { data, callback }
  this.outputSize = 0;
  this.writable = true;
  this.destroyed = false;
  this._last = false;
  this.chunkedEncoding = false;
  this.shouldKeepAlive = true;
  this.maxRequestsOnConnectionReached = false;
  this._defaultKeepAlive = true;
  this.useChunkedEncodingByDefault = true;
  this.sendDate = false;
  this._removedConnection = false;
  this._removedContLen = false;
  this._removedTE = false;
  this.strictContentLength = false;
  this._contentLength = null;
  this._hasBody = true;
  this._trailer = "";
  this.finished = false;
  this._headerSent = false;
  this._closed = false;
  this.socket = null;
  this._header = null;
  this[kOutHeaders] = null;
  this[kSent] = [];
  this[kSink] = null;
  this[kCorked] = 0;
  this[kErrored] = null;
  this[kNeedDrain] = false;
  this[kUniqueHeaders] = null;
  this[kHighWaterMark] = options?.highWaterMark ?? getDefaultHighWaterMark();
  this[kRejectsBody] = options?.rejectNonStandardBodyWrites ?? false;
}

const nothing = () => {};

function writeAfterEnd() {
  return codedError(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end");
}

function emitError(message, error, callback) {
  nextTick(() => {
    callback(error);
    if (!message.destroyed) message.emit("error", error);
  });
}

function lengthMismatch(sent, told) {
  return codedError(
    Error,
    "ERR_HTTP_CONTENT_LENGTH_MISMATCH",
    `Response body's content-length of ${sent} byte(s) does not match the content-length of ${told} byte(s) set in header`,
  );
}

function toBytes(chunk, encoding) {
  return typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
}

const kBytesWritten = Symbol("kBytesWritten");

function write(message, chunk, encoding, callback, atEnd) {
  callback = typeof callback === "function" ? callback : nothing;
  if (chunk === null) throw codedError(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
  if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) {
    throw invalidArgument("chunk", "of type string or an instance of Buffer or Uint8Array", chunk);
  }
  if (message.finished) {
    const error = writeAfterEnd();
    if (message.destroyed) nextTick(callback, error);
    else emitError(message, error, callback);
    return false;
  }
  if (message.destroyed) {
    nextTick(callback, codedError(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed"));
    return false;
  }
  const bytes = toBytes(chunk, encoding);
  if (message.strictContentLength) {
    const total = (message[kBytesWritten] ?? 0) + bytes.length;
    message[kBytesWritten] = total;
    const told = message._contentLength;
    if (told !== null && (atEnd ? total !== told : total > told)) throw lengthMismatch(total, told);
  }
  if (!message._header) {
    if (atEnd) message._contentLength = bytes.length;
    message._implicitHeader();
  }
  if (!message._hasBody) {
    if (message[kRejectsBody]) {
      throw codedError(Error, "ERR_HTTP_BODY_NOT_ALLOWED", "Adding content for this request method or response status is not allowed.");
    }
    nextTick(callback);
    return true;
  }
  return message._send(bytes, null, callback);
}

class Members extends HeaderMethods {
  get headersSent() {
    return !!this._header;
  }

  get errored() {
    return this[kErrored];
  }

  get closed() {
    return this._closed;
  }

  get writableFinished() {
    return this.finished && this.outputSize === 0 && !this[kSink]?.heldBytes;
  }

  get writableObjectMode() {
    return false;
  }

  get writableLength() {
    return this.outputSize + (this[kSink]?.heldBytes ?? 0);
  }

  get writableHighWaterMark() {
    return this[kHighWaterMark];
  }

  get writableCorked() {
    return this[kCorked];
  }

  get writableEnded() {
    return this.finished;
  }

  get writableNeedDrain() {
    return !this.destroyed && !this.finished && this[kNeedDrain];
  }

  get connection() {
    return this.socket;
  }

  set connection(value) {
    this.socket = value;
  }

  cork() {
    this[kCorked] += 1;
    this.socket?.cork?.();
  }

  uncork() {
    if (this[kCorked] > 0) this[kCorked] -= 1;
    this.socket?.uncork?.();
    if (this[kCorked] === 0) this._flush();
  }

  setTimeout(msecs, callback = undefined) {
    if (callback) this.on("timeout", callback);
    if (this.socket) this.socket.setTimeout?.(msecs);
    else this.once("socket", (socket) => socket.setTimeout?.(msecs));
    return this;
  }

  destroy(error = undefined) {
    if (this.destroyed) return this;
    this.destroyed = true;
    this[kErrored] = error;
    this[kSink]?.destroy(error);
    this.socket?.destroy?.(error);
    return this;
  }

  write(chunk, encoding = undefined, callback = undefined) {
    if (typeof encoding === "function") {
      callback = encoding;
      encoding = undefined;
    }
    const more = write(this, chunk, encoding, callback, false);
    if (!more) this[kNeedDrain] = true;
    return more;
  }

  end(chunk = undefined, encoding = undefined, callback = undefined) {
    if (typeof chunk === "function") [chunk, encoding, callback] = [undefined, undefined, chunk];
    else if (typeof encoding === "function") [encoding, callback] = [undefined, encoding];
    if (chunk) {
      if (this.finished) {
        emitError(this, writeAfterEnd(), typeof callback === "function" ? callback : nothing);
        return this;
      }
      write(this, chunk, encoding, null, true);
    } else if (this.finished) {
      if (typeof callback !== "function") return this;
      if (!this.writableFinished) this.on("finish", callback);
      else callback(codedError(Error, "ERR_STREAM_ALREADY_FINISHED", "Cannot call end after a stream was finished"));
      return this;
    } else if (!this._header) {
      if (this.strictContentLength && this._contentLength) throw lengthMismatch(0, this._contentLength);
      this._contentLength = 0;
      this._implicitHeader();
    }
    if (typeof callback === "function") this.once("finish", callback);
    if (!this._headerSent) this._send("", "latin1");
    this[kCorked] = 0;
    this.finished = true;
    this._flush();
    if (this.outputData.length === 0) this._finish();
    return this;
  }

  /** All data is with the sink. */
  _finish() {
    this.emit("prefinish");
    this[kSink]?.end(() => this.emit("finish"));
  }

  _implicitHeader() {
    throw notImplemented("_implicitHeader()");
  }

  _storeHeader(firstLine, headers) {
    renderHead(this, firstLine, headers, this[kUniqueHeaders]);
  }

  /** Sends the head before the first data. */
  _send(data, encoding = undefined, callback = undefined) {
    if (typeof encoding === "function") [encoding, callback] = [undefined, encoding];
    if (!this._headerSent) {
      this._headerSent = true;
      this._sendHead();
    }
    return this._writeRaw(data, encoding, callback);
  }

  // Only a message of a server has a sink. The event is for those who watch a message without one.
  _sendHead() {
    if (this[kSink] !== null) {
      this[kSink].head(this.statusCode, this.statusMessage, this[kSent]);
      return;
    }
    const status = /^HTTP\/\d\.\d (\d{3}) ?([^\r\n]*)\r\n/.exec(`${this._header}`);
    if (status === null || this.listenerCount("_headersSent") === 0) return;
    const headers = new Headers();
    for (const line of this._header.slice(status[0].length).split("\r\n")) {
      const colon = line.indexOf(":");
      if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    this.emit("_headersSent", { statusCode: Number(status[1]), statusMessage: status[2], headers });
  }

  _writeRaw(data, encoding = undefined, callback = undefined) {
    const bytes = toBytes(data, encoding ?? undefined);
    if (this.destroyed) return false;
    if (this[kSink] !== null && this[kCorked] === 0 && this.outputData.length === 0) {
      return bytes.length === 0 ? true : this[kSink].write(bytes, callback ?? nothing);
    }
    if (bytes.length > 0) {
      this.outputData.push({ data: bytes, encoding: null, callback: callback ?? nothing });
      this.outputSize += bytes.length;
    }
    return this.outputSize < this[kHighWaterMark];
  }

  _flush() {
    if (this[kSink] === null || this.outputData.length === 0) return;
    const waiting = this.outputData;
    this.outputData = [];
    this.outputSize = 0;
    for (const { data, callback } of waiting) this[kSink].write(data, callback);
    if (this[kNeedDrain] && !this.finished && this[kSink].wantsMore) this._drain();
  }

  _drain() {
    if (!this[kNeedDrain] || this.finished || this.destroyed) return;
    this[kNeedDrain] = false;
    this.emit("drain");
  }

  flushHeaders() {
    if (!this._header) this._implicitHeader();
    this._send("");
  }

  _renderHeaders() {
    if (this._header) throw headersSent("render");
    const headers = {};
    for (const [name, value] of Object.values(this[kOutHeaders] ?? {})) headers[name] = value;
    return headers;
  }

  pipe() {
    this.emit("error", codedError(Error, "ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable"));
  }

  [Symbol.for("nodejs.rejection")](error) {
    this.destroy(error);
  }
}

defineLegacyClass(OutgoingMessage, HeaderMethods, Members);
