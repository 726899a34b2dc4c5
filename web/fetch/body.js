// https://fetch.spec.whatwg.org/#bodies
//
// A body stays in the form it was made from (its source) until a stream is needed. Most bodies are written and sent, or received
// and read whole, and never become a stream.
import { lazy } from "../internal/lazy.js";
import { copyBytes, isBufferSource, toUSVString } from "../internal/webidl.js";
import { decodeText, decodeTextKeepingMark, encodeText } from "../internal/text.js";
import { blobBytes, blobType, createBlob, isBlob } from "../file/blob.js";
import { createFormData, entryList, isFormData } from "../file/form_data.js";
import {
  isDisturbed,
  isReadableStream,
  markDisturbed,
  PLAIN,
  readAllBytes,
  ReadableStream,
  readNext,
  teeForClone,
} from "../streams/streams.js";
import { lengthOfStream } from "../streams/lengths.js";
import { isURLSearchParams } from "../url/search_params.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";
import { parseForm } from "./form_body.js";
import { Holding } from "./holding.js";
import { isIterableBody } from "./iterable_body.js";
import { extractMimeType, serializeMimeType } from "./mime_type.js";

export const TEXT_TYPE = "text/plain;charset=UTF-8";
export const FORM_TYPE = "application/x-www-form-urlencoded;charset=UTF-8";

// stream -> the body it was made for, so that `new Response(other.body)` can use the source instead of reading the stream.
const bodyOfStream = new WeakMap();

export class Body {
  /** @type {string | Uint8Array | { read(): Promise<Uint8Array | null>, cancel(reason: unknown): void } | null} */
  source;
  stream = null;
  isTaken = false; // consumed without its stream
  isShared = false; // a clone or a Blob uses the same source
  isOfGet = false; // a client sent it with a GET or HEAD, which the standards allow; it may be forwarded with one
  type = null; // the Content-Type that belongs to it, or null

  constructor(source, type = null) {
    this.source = source;
    this.type = type;
  }
}

/** https://fetch.spec.whatwg.org/#concept-bodyinit-extract */
export function extractBody(object) {
  if (typeof object === "string") return new Body(object, TEXT_TYPE);
  if (isReadableStream(object)) return bodyFromStream(object);
  if (isBufferSource(object)) return new Body(copyBytes(object));
  if (isURLSearchParams(object)) return new Body(`${object}`, FORM_TYPE);
  if (isBlob(object)) return bodyFromBlob(object);
  if (isFormData(object)) {
    const { bytes, type } = lazy("file/multipart.js").serializeMultipart(entryList(object));
    return new Body(bytes, type);
  }
  return isIterableBody(object) ? bodyFromIterable(object) : new Body(`${object}`, TEXT_TYPE);
}

let keepsMark = false;
let standardTypes = true;
whenFlagsAreSet(() => {
  keepsMark = !isOn("strip_bom_in_read_all_text");
  standardTypes = isOn("blob_standard_mime_type");
});

function bodyFromIterable(object) {
  const body = new Body(null);
  body.stream = ReadableStream.from(object);
  return body;
}

function bodyFromBlob(blob) {
  const body = new Body(blobBytes(blob), blobType(blob) === "" ? null : blobType(blob));
  body.isShared = true;
  return body;
}

function bodyFromStream(stream) {
  if (isDisturbed(stream)) throw new TypeError("This ReadableStream is disturbed (has already been read from), and cannot be used as a body.");
  if (stream.locked) throw new TypeError("This ReadableStream is locked to a reader, and cannot be used as a body.");
  const body = new Body(null);
  body.stream = stream;
  return body;
}

/** True if the body has no bytes, and that is known without reading it. */
export function isKnownEmpty({ source, stream }) {
  return stream === null ? source?.length === 0 : lengthOfStream(stream) === 0;
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

function usedError(body) {
  if (!isUsed(body)) return new TypeError("This ReadableStream is currently locked to a reader.");
  return new TypeError("Body has already been used. It can only be used once. Use tee() first if you need to read it twice.");
}

/** https://fetch.spec.whatwg.org/#concept-body-stream: created on first access. */
export function streamOf(body) {
  if (body.stream === null) {
    body.stream = body.isTaken ? emptyStream() : streamFrom(body.source);
    if (body.isTaken) {
      markDisturbed(body.stream);
      body.stream.getReader(); // locks it for good: the source is read elsewhere
    } else bodyOfStream.set(body.stream, body);
  }
  return body.stream;
}

function emptyStream() {
  return new ReadableStream({ type: "bytes", [PLAIN]: true, start: (controller) => controller.close() });
}

function closeStream(controller) {
  controller.close();
  controller.byobRequest?.respond(0);
}

function streamFrom(source) {
  if (typeof source !== "string" && !(source instanceof Uint8Array)) return streamFromReads(source);
  return new ReadableStream({
    type: "bytes",
    [PLAIN]: true,
    pull(controller) {
      // A copy, because the stream detaches the buffer and a clone of this body may use the same source.
      const bytes = typeof source === "string" ? encodeText(source) : source.slice();
      if (bytes.length > 0) controller.enqueue(bytes);
      closeStream(controller);
    },
  });
}

function streamFromReads(source) {
  return new ReadableStream({
    type: "bytes",
    [PLAIN]: true,
    start(controller) {
      if (source.onBroken === null) source.onBroken = (error) => controller.error(error);
    },
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

/** https://fetch.spec.whatwg.org/#concept-body-clone. The caller has checked that the body is usable. */
export function cloneBody(body) {
  if (body.stream === null && (typeof body.source === "string" || body.source instanceof Uint8Array)) {
    const copy = new Body(body.source);
    body.isShared = copy.isShared = true;
    return copy;
  }
  const [first, second] = teeForClone(streamOf(body));
  const copy = new Body(null);
  body.source = null;
  body.stream = first;
  copy.stream = second;
  return copy;
}

/** Moves the body to another Request or Response. The old one counts as used from now on. */
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

// The source of an untouched stream that this file made, as a new stream; null for any other stream.
function takeSource(body) {
  const known = bodyOfStream.get(body.stream);
  if (known === undefined) return null;
  markDisturbed(body.stream);
  body.stream.getReader(); // locks it for good: two readers of one source would each get a part
  return streamFrom(known.source);
}

function throughProxy(stream) {
  const reader = stream.getReader();
  return streamFromReads({
    read: () => readNext(reader),
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * Takes the body in order to send it, in the form that needs the least work: null, a string, a Uint8Array, a source with read() and
 * cancel(), or a ReadableStream. The caller has checked that the body is usable; it is not usable afterwards.
 */
export function takeBody(body) {
  if (body === null) return null;
  body.isTaken = true;
  if (body.stream === null) return body.source;
  const known = bodyOfStream.get(body.stream);
  if (known === undefined) return body.stream;
  markDisturbed(body.stream);
  body.stream.getReader(); // locks it for good: its source is read without the stream
  known.isTaken = true;
  return known.source;
}

/** True if a Body or a stream holds what a client sent with a GET or HEAD. */
export function isBodyOfGet(body) {
  return (body instanceof Body ? body : bodyOfStream.get(body))?.isOfGet ?? false;
}

/** The content coding that reading this unread body will undo; "" if there is none. */
export function codingOf(body) {
  const known = body.stream === null ? body : bodyOfStream.get(body.stream);
  return known?.source?.coding ?? "";
}

/** True if this unread body can be taken in the content coding in which it was received. */
export function takesEncoded(body, coding) {
  if (body.isShared) return false;
  const known = body.stream === null ? body : bodyOfStream.get(body.stream);
  return known?.source?.sendEncoded?.(coding) ?? false;
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

async function readSource(source) {
  const chunks = [];
  const holding = new Holding();
  let length = 0;
  source.wantAll?.();
  try {
    for (;;) {
      const chunk = await source.read();
      if (chunk === null) return concat(chunks, length);
      const error = holding.add(chunk.length);
      if (error !== null) {
        source.cancel(error);
        throw error;
      }
      chunks.push(chunk);
      length += chunk.length;
    }
  } finally {
    holding.release();
  }
}

function readStream(stream, finish, reject) {
  const holding = new Holding();
  readAllBytes(
    stream,
    (chunks, length) => {
      holding.release();
      finish(() => concat(chunks, length));
    },
    (error) => {
      holding.release();
      reject(error);
    },
    (length) => holding.add(length),
  );
}

/**
 * https://fetch.spec.whatwg.org/#concept-body-consume-body: a promise of `convert(content)`, where `content` is the whole body as a
 * string or as bytes, in the form that is available.
 */
function consume(body, convert) {
  return new Promise((resolve, reject) => {
    const failure = body?.stream === null ? body.source?.failure : undefined;
    if (failure) throw failure.error;
    if (isUnusable(body)) throw usedError(body);
    const finish = (content) => {
      try {
        resolve(convert(typeof content === "function" ? content() : content));
      } catch (error) {
        reject(error);
      }
    };
    if (body === null) finish("");
    else if (body.stream !== null) readStream(body.stream, finish, reject);
    else {
      body.isTaken = true;
      if (isWhole(body.source)) finish(body.source);
      else readSource(body.source).then(finish, reject);
    }
  });
}

// The result of decoding the encoded string: lone surrogates are replaced, a byte order mark is dropped.
function asText(content) {
  if (typeof content !== "string") return keepsMark ? decodeTextKeepingMark(content) : decodeText(content);
  const text = toUSVString(content);
  if (keepsMark) return text;
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

function asBytes(content) {
  if (typeof content === "string") return encodeText(content);
  // A view of a larger buffer is copied, because the rest of the buffer belongs to other code.
  return content.byteLength === content.buffer.byteLength ? content : content.slice();
}

/** https://fetch.spec.whatwg.org/#dom-body-text */
export function bodyText(body) {
  return consume(body, asText);
}

/** https://fetch.spec.whatwg.org/#dom-body-textstream */
export function bodyTextStream(body) {
  if (isUnusable(body)) throw usedError(body);
  return (body === null ? emptyStream() : streamOf(body)).pipeThrough(new (lazy("encoding/text_streams.js").TextDecoderStream)());
}

/** https://fetch.spec.whatwg.org/#dom-body-json */
export function bodyJson(body) {
  return consume(body, (content) => JSON.parse(asText(content)));
}

/** https://fetch.spec.whatwg.org/#dom-body-bytes */
export function bodyBytes(body) {
  return consume(body, (content) => ownBytes(body, content));
}

function ownBytes(body, content) {
  return body?.isShared && typeof content !== "string" ? content.slice() : asBytes(content);
}

/** https://fetch.spec.whatwg.org/#dom-body-arraybuffer */
export function bodyArrayBuffer(body) {
  return consume(body, (content) => ownBytes(body, content).buffer);
}

/** https://fetch.spec.whatwg.org/#dom-body-blob */
export function bodyBlob(body, contentType) {
  return consume(body, (content) => {
    if (!standardTypes) return createBlob(asBytes(content), contentType ?? "");
    const mime = extractMimeType(contentType);
    return createBlob(asBytes(content), mime === null ? "" : serializeMimeType(mime));
  });
}

/** https://fetch.spec.whatwg.org/#dom-body-formdata */
export function bodyFormData(body, contentType) {
  return consume(body, (content) => createFormData(parseForm(content, contentType, asBytes)));
}
