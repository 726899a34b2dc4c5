// https://nodejs.org/api/stream.html: Node's code from the package readable-stream, with this platform's events, Buffer and process.
import Stream from "readable-stream/lib/stream.js";
import { Buffer } from "./buffer.js";
import { AbortError } from "./errors.js";
import { addWebAdapters } from "./stream_adapters.js";

addWebAdapters(Stream);

// As in Node 24, whose code is newer than the package.
Stream.setDefaultHighWaterMark(false, 65536);
Stream.Duplex.prototype.destroy = Stream.Writable.prototype.destroy; // a corked write learns that the stream is destroyed

const { write: writeBytes, end: endBytes } = Stream.Writable.prototype;

// Every view is data, not only Uint8Array.
function dataOf(stream, chunk) {
  const isOther = typeof chunk === "object" && ArrayBuffer.isView(chunk) && !(chunk instanceof Uint8Array);
  return !isOther || stream._writableState?.objectMode ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

function write(chunk, encoding, callback) {
  return writeBytes.call(this, dataOf(this, chunk), encoding, callback);
}

function end(chunk, encoding, callback) {
  return endBytes.call(this, dataOf(this, chunk), encoding, callback);
}

function disposeWritable() {
  if (!this.destroyed) this.destroy(this.writableFinished ? null : new AbortError({ reason: undefined }));
  return new Promise((resolve, reject) => {
    Stream.finished(this, (error) => (error && error.name !== "AbortError" ? reject(error) : resolve(null)));
  });
}

for (const Class of [Stream.Writable, Stream.Duplex]) {
  Object.assign(Class.prototype, { write, end });
  Object.defineProperty(Class.prototype, Symbol.asyncDispose, { value: disposeWritable, writable: true, configurable: true });
}

export const {
  Duplex,
  PassThrough,
  Readable,
  Transform,
  Writable,
  addAbortSignal,
  compose,
  destroy,
  finished,
  getDefaultHighWaterMark,
  isDestroyed,
  isDisturbed,
  isErrored,
  isReadable,
  isWritable,
  pipeline,
  promises,
  setDefaultHighWaterMark,
} = Stream;

/** https://nodejs.org/api/stream.html#streamduplexpairoptions: data written to one can be read from the other. */
export function duplexPair(options = undefined) {
  const waiting = [null, null]; // per side: the write that waits until the side is read
  const pair = [0, 1].map((side) => {
    const other = side === 1 ? 0 : 1;
    return new Duplex({
      ...options,
      read() {
        const written = waiting[side];
        waiting[side] = null;
        written?.();
      },
      write(chunk, encoding, callback) {
        if (pair[other].push(chunk)) callback();
        else waiting[other] = callback;
      },
      final(callback) {
        pair[other].push(null);
        callback();
      },
    });
  });
  return pair;
}

Stream.duplexPair = duplexPair;

export { Stream };
export default Stream;
