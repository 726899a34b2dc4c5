// The content of objects on its way to and from Python, in pieces and with backpressure.
import { defineOp } from "#web/internal/ops.js";
import { encodeText } from "#web/internal/text.js";
import { bytesOf, isBufferSource } from "#web/internal/webidl.js";
import { Body, isUnusable, takeBody } from "#web/fetch/body.js";
import { blobBytes, isBlob } from "#web/file/blob.js";
import { lengthOfStream, setLength } from "#web/streams/lengths.js";
import { isReadableStream } from "#web/streams/streams.js";
import { concat, IncomingBody, sourceOfStream } from "#web/worker/bodies.js";

const read = defineOp("r2.read");
const send = defineOp("r2.send");
const write = defineOp("r2.write");

const AT_ONCE = 1 << 20; // bytes: shorter content is in the op itself
const PIECE = 512 << 10; // most bytes that are sent together,
const ENOUGH = 64 << 10; // and least, unless the stream ends
const DIVERTED = 256 << 10; // bytes: a longer request body is taken past the engine

/** The content of an object whose first piece has arrived, in the form in which the platform reads bodies: read() until null. */
export class StoredContent {
  #binding;
  #reader;
  #first;
  #left; // bytes that have not arrived
  #next = null; // the pending read: one is always requested ahead
  #whole; // whether all of it can be had in one piece

  constructor(binding, reader, first, length, whole) {
    this.#binding = binding;
    this.#reader = reader;
    this.#first = first;
    this.#left = length - first.length;
    this.#whole = whole;
    setLength(this, length);
  }

  /** All of it will be read. One piece costs half of what many cost that are joined, even if the first of them comes twice. */
  wantAll() {
    if (this.#first === null || !this.#whole) return;
    this.#left += this.#first.length;
    this.#first = null;
    this.#next = read({ binding: this.#binding, reader: this.#reader, whole: true });
  }

  async read() {
    if (this.#first !== null) {
      const first = this.#first;
      this.#first = null;
      this.#readAhead();
      return first;
    }
    if (this.#left === 0) return null;
    this.#readAhead();
    const next = this.#next;
    this.#next = null;
    const { body } = await next;
    this.#left -= body.length;
    this.#readAhead();
    return body;
  }

  #readAhead() {
    if (this.#left === 0 || this.#next !== null) return;
    this.#next = read({ binding: this.#binding, reader: this.#reader });
    this.#next.catch(() => {}); // the reader gets the error
  }

  /** Whether pipe() is possible. */
  get isUntouched() {
    return this.#first !== null;
  }

  /** Before the first read: sends all of it as the body of the response that has just begun, past the engine. Resolves at its end. */
  async pipe() {
    const first = this.#first;
    this.#first = null;
    this.#left = 0;
    await send({ binding: this.#binding, reader: this.#reader }, first);
  }

  cancel() {
    this.#first = null;
    if (this.#left === 0) return;
    this.#left = 0;
    void read({ binding: this.#binding, reader: this.#reader, cancel: true }).catch(() => {});
  }
}

function sourceOfStreamValue(stream) {
  const body = new Body(null);
  body.stream = stream;
  if (isUnusable(body)) throw new TypeError("This ReadableStream is disturbed (has already been read from), or locked to a reader.");
  const known = lengthOfStream(stream);
  const taken = takeBody(body);
  if (typeof taken === "string") return { bytes: encodeText(taken) };
  if (taken instanceof Uint8Array) return { bytes: taken };
  const source = isReadableStream(taken) ? sourceOfStream(taken) : taken;
  const length = known ?? lengthOfStream(taken) ?? taken.declaredLength;
  if (length === undefined) {
    const error = new TypeError(
      "Provided readable stream must have a known length (request/response body or readable half of FixedLengthStream)",
    );
    source.cancel(error);
    throw error;
  }
  return { source, length };
}

/** A value of put() or uploadPart(): { bytes }, or { source, length }. */
export function valueOf(value) {
  if (value === null || value === undefined) return { bytes: null };
  if (typeof value === "string") return { bytes: encodeText(value) };
  if (isBufferSource(value)) return { bytes: bytesOf(value) };
  if (isBlob(value)) return { bytes: blobBytes(value) };
  if (isReadableStream(value)) return sourceOfStreamValue(value);
  return { bytes: encodeText(`${value}`) };
}

/** Sends a value with `begin`, the op of put() or uploadPart(); returns the meta of its last reply. */
export async function sendValue(begin, meta, { bytes, source, length }, isPart) {
  if (source === undefined && (bytes === null || bytes.length <= AT_ONCE)) return (await begin(meta, bytes)).meta;
  const { binding } = meta;
  const size = source === undefined ? bytes.length : length;
  const divert = source instanceof IncomingBody && size > DIVERTED;
  let upload, before; // `before`: bytes of a diverted body that come to the worker all the same
  try {
    ({ upload, before } = (await begin({ ...meta, length: size, divert })).meta);
  } catch (error) {
    source?.cancel(new Error("Stream cancelled because the associated put operation encountered an error."));
    throw error;
  }
  const next = { binding, upload, isPart };
  if (before !== undefined) return sendDiverted(next, source, before);
  const last = { ...next, ended: true };
  return source === undefined ? sendBytes(next, last, bytes) : sendSource(next, last, source);
}

async function sendBytes(next, last, bytes) {
  let at = 0;
  for (; at + PIECE < bytes.length; at += PIECE) await write(next, bytes.subarray(at, at + PIECE));
  return (await write(last, bytes.subarray(at))).meta;
}

/** Sends the part of a request body that came to the worker. Python adds the rest, which never does. */
async function sendDiverted(next, source, before) {
  try {
    return (await write({ ...next, rest: true }, await source.readUpTo(before))).meta;
  } catch (error) {
    source.cancel(error);
    await write({ ...next, cancel: true }).catch(() => {}); // it may be closed already
    throw error;
  }
}

/** Sends a source. While a piece is written, the chunks that arrive are gathered for the next one. */
async function sendSource(next, last, source) {
  let written = null; // the pending write
  let chunks = [];
  let size = 0;
  const send = () => {
    written = write(next, concat(chunks)).then(() => {
      written = null;
    });
    written.catch(() => {}); // awaited below
    chunks = [];
    size = 0;
  };
  try {
    for (;;) {
      const chunk = await source.read();
      if (chunk === null) break;
      for (let at = 0; at < chunk.length; at += PIECE) {
        const part = chunk.subarray(at, at + PIECE);
        if (size + part.length > PIECE) {
          await written;
          send();
        }
        chunks.push(part);
        size += part.length;
      }
      if (written === null && size >= ENOUGH) send();
    }
    await written;
    return (await write(last, size === 0 ? null : concat(chunks))).meta;
  } catch (error) {
    source.cancel(error);
    await write({ ...next, cancel: true }).catch(() => {}); // it may be closed already
    throw error;
  }
}
