// https://fetch.spec.whatwg.org/#bodies
//
// A body is what it was made from (its source) until somebody asks for a stream. Most bodies are written and sent, or received and
// read whole, and never become a stream at all.
import { copyBytes, isBufferSource, toUSVString } from "../internal/webidl.js";
import { decodeText, encodeText } from "../internal/text.js";
import { isDisturbed, isReadableStream, markDisturbed, ReadableStream } from "../streams/streams.js";
import { isURLSearchParams } from "../url/search_params.js";

export const TEXT_TYPE = "text/plain;charset=UTF-8";
export const FORM_TYPE = "application/x-www-form-urlencoded;charset=UTF-8";

// stream -> the body it was made for, so that `new Response(other.body)` need not read a stream whose content is at hand.
const bodyOfStream = new WeakMap();

export class Body {
  /** @type {string | Uint8Array | { read(): Promise<Uint8Array | null>, cancel(reason: unknown): void } | null} */
  source;
  stream = null;
  isTaken = false; // consumed by other means than its stream
  isShared = false; // a clone has the same source

  constructor(source) {
    this.source = source;
  }
}

/** https://fetch.spec.whatwg.org/#concept-bodyinit-extract: the body; its type is told by typeOfBody. */
export function extractBody(object) {
  if (typeof object === "string") return new Body(object);
  if (isReadableStream(object)) return bodyFromStream(object);
  if (isBufferSource(object)) return new Body(copyBytes(object));
  return new Body(`${object}`); // URLSearchParams too
}

/** https://fetch.spec.whatwg.org/#concept-bodyinit-extract: the Content-Type of the same object, or null. */
export function typeOfBody(object) {
  if (typeof object === "string") return TEXT_TYPE;
  if (isReadableStream(object) || isBufferSource(object)) return null;
  return isURLSearchParams(object) ? FORM_TYPE : TEXT_TYPE;
}

function bodyFromStream(stream) {
  if (isDisturbed(stream)) throw new TypeError("The stream given as a body has already been read from.");
  if (stream.locked) throw new TypeError("The stream given as a body is locked.");
  const body = new Body(null);
  body.stream = stream;
  return body;
}

/** https://fetch.spec.whatwg.org/#dom-body-bodyused */
export function isUsed(body) {
  return body !== null && (body.isTaken || (body.stream !== null && isDisturbed(body.stream)));
}

/** https://fetch.spec.whatwg.org/#body-unusable */
export function isUnusable(body) {
  if (body === null) return false;
  return body.isTaken || (body.stream !== null && (isDisturbed(body.stream) || body.stream.locked));
}

/** https://fetch.spec.whatwg.org/#concept-body-stream: made when it is first asked for. */
export function streamOf(body) {
  if (body.stream === null) {
    body.stream = body.isTaken ? emptyStream() : streamFrom(body.source);
    if (body.isTaken) markDisturbed(body.stream);
    else bodyOfStream.set(body.stream, body);
  }
  return body.stream;
}

function emptyStream() {
  return new ReadableStream({ type: "bytes", start: (controller) => controller.close() });
}

function closeStream(controller) {
  controller.close();
  controller.byobRequest?.respond(0);
}

function streamFrom(source) {
  if (typeof source !== "string" && !(source instanceof Uint8Array)) return streamFromReads(source);
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      // A copy: the stream takes the buffer away, and a clone of this body may have the same source.
      const bytes = typeof source === "string" ? encodeText(source) : source.slice();
      if (bytes.length > 0) controller.enqueue(bytes);
      closeStream(controller);
    },
  });
}

function streamFromReads(source) {
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      for (;;) {
        const chunk = await source.read();
        if (chunk === null) return closeStream(controller);
        if (chunk.length > 0) return controller.enqueue(chunk);
      }
    },
    cancel: (reason) => source.cancel(reason),
  });
}

/** https://fetch.spec.whatwg.org/#concept-body-clone. The caller has made sure that the body is not unusable. */
export function cloneBody(body) {
  if (body.stream === null && (typeof body.source === "string" || body.source instanceof Uint8Array)) {
    const copy = new Body(body.source);
    body.isShared = copy.isShared = true;
    return copy;
  }
  const [first, second] = streamOf(body).tee();
  const copy = new Body(null);
  body.source = null;
  body.stream = first;
  copy.stream = second;
  return copy;
}

/** The body moves to another Request or Response: the old one is used from now on. */
export function moveBody(body) {
  const moved = new Body(body.source);
  moved.isShared = body.isShared;
  if (body.stream !== null) {
    // Step 41 of the Request constructor: a proxy, so that the old stream is locked and disturbed.
    moved.source = null;
    moved.stream = takeSource(body) ?? throughProxy(body.stream);
  }
  body.isTaken = true;
  return moved;
}

// The content of an untouched stream of ours, as a stream of its own; null if the stream holds something else.
function takeSource(body) {
  const known = bodyOfStream.get(body.stream);
  if (known === undefined) return null;
  markDisturbed(body.stream);
  body.stream.getReader(); // for ever: two readers of one source would each get a part
  return streamFrom(known.source);
}

function throughProxy(stream) {
  const reader = stream.getReader();
  return streamFromReads({
    read: async () => {
      const { value, done } = await reader.read();
      return done ? null : requireBytes(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function requireBytes(chunk) {
  if (chunk instanceof Uint8Array) return chunk;
  throw new TypeError("A body's stream may only hold Uint8Arrays.");
}

/**
 * Take the body to send it: null, a string, a Uint8Array or a ReadableStream, whatever needs the least work. The caller has made
 * sure that it is not unusable; from now on it is.
 */
export function takeBody(body) {
  if (body === null) return null;
  body.isTaken = true;
  if (body.stream === null && isWhole(body.source)) return body.source;
  const stream = streamOf(body);
  const known = bodyOfStream.get(stream);
  if (known === undefined || !isWhole(known.source)) return stream;
  markDisturbed(stream);
  known.isTaken = true;
  return known.source;
}

function isWhole(source) {
  return typeof source === "string" || source instanceof Uint8Array;
}

function concat(chunks, length) {
  if (chunks.length === 1) return chunks[0];
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

async function readAll(read) {
  const chunks = [];
  let length = 0;
  for (;;) {
    const chunk = await read();
    if (chunk === null) return concat(chunks, length);
    chunks.push(chunk);
    length += chunk.length;
  }
}

/** https://streams.spec.whatwg.org/#readablestreamdefaultreader-read-all-bytes */
async function readStream(stream) {
  const reader = stream.getReader();
  try {
    return await readAll(async () => {
      const { value, done } = await reader.read();
      return done ? null : requireBytes(value);
    });
  } finally {
    reader.releaseLock();
  }
}

/** https://fetch.spec.whatwg.org/#concept-body-consume-body: all of it, as a string or as bytes, whichever is at hand. */
async function consume(body) {
  if (body === null) return "";
  if (isUnusable(body)) throw new TypeError("The body has already been used, or its stream is locked.");
  if (body.stream !== null) return readStream(body.stream);
  body.isTaken = true;
  const { source } = body;
  return isWhole(source) ? source : readAll(() => source.read());
}

// What decoding the encoded string would give: lone surrogates replaced, a byte order mark dropped.
function asText(content) {
  if (typeof content !== "string") return decodeText(content);
  const text = toUSVString(content);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

function asBytes(content) {
  if (typeof content === "string") return encodeText(content);
  // Only a whole buffer may be handed out: the rest of it would be somebody else's.
  return content.byteLength === content.buffer.byteLength ? content : content.slice();
}

/** https://fetch.spec.whatwg.org/#dom-body-text */
export async function bodyText(body) {
  return asText(await consume(body));
}

/** https://fetch.spec.whatwg.org/#dom-body-json */
export async function bodyJson(body) {
  return JSON.parse(asText(await consume(body)));
}

/** https://fetch.spec.whatwg.org/#dom-body-bytes */
export async function bodyBytes(body) {
  const content = await consume(body);
  return body?.isShared && typeof content !== "string" ? content.slice() : asBytes(content);
}

/** https://fetch.spec.whatwg.org/#dom-body-arraybuffer */
export async function bodyArrayBuffer(body) {
  return (await bodyBytes(body)).buffer;
}
