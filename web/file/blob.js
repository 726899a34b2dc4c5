// https://w3c.github.io/FileAPI/#blob-section
//
// The bytes of a Blob never change, so a slice is a view of the same bytes and a clone shares them. Bytes that leave a Blob are
// always copied.
import { lazy } from "../internal/lazy.js";
import { defineInterface } from "../internal/platform.js";
import { decodeText, encodeText } from "../internal/text.js";
import {
  bytesOf,
  isBufferSource,
  toClampedLong,
  toDictionary,
  toDOMString,
  toEnum,
  toSequence,
  toUSVString,
} from "../internal/webidl.js";
import { PLAIN, ReadableStream } from "../streams/streams.js";

const INTERNAL = Symbol("made by the platform");
const CHUNK = 65536; // bytes per chunk of a stream

/** The bytes of a Blob, which must not be written to or handed out; undefined for any other value. */
export let blobBytes;
/** The type of a Blob, independent of what a worker did to the getter: it becomes a header. */
export let blobType;
export let isBlob;
/** (bytes that no other code can change, type) -> Blob */
export let createBlob;

/** https://w3c.github.io/FileAPI/#constructorBlob, step 3: lower case, or "" if a character is not printable ASCII. */
export function toBlobType(type) {
  return /[^\x20-\x7e]/.test(type) ? "" : type.toLowerCase();
}

/** https://w3c.github.io/FileAPI/#convert-line-endings-to-native; the native line ending is a line feed. */
function convertLineEndings(string) {
  return string.replace(/\r\n?/g, "\n");
}

function toPart(part) {
  return isBlob(part) || isBufferSource(part) ? part : toUSVString(part);
}

function partBytes(part, endings) {
  if (isBlob(part)) return blobBytes(part);
  if (typeof part === "string") return encodeText(endings === "native" ? convertLineEndings(part) : part);
  return bytesOf(part);
}

/** https://w3c.github.io/FileAPI/#process-blob-parts */
function processParts(parts, endings) {
  if (parts.length === 1 && isBlob(parts[0])) return blobBytes(parts[0]);
  const pieces = [];
  let length = 0;
  for (const part of parts) {
    const bytes = partBytes(part, endings);
    pieces.push(bytes);
    length += bytes.length;
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function readOptions(options) {
  const dictionary = toDictionary(options, "Blob constructor");
  const { endings } = dictionary;
  const kind = endings === undefined ? "transparent" : toEnum(endings, ["transparent", "native"], "Blob constructor: endings");
  const { type } = dictionary;
  return { endings: kind, type: type === undefined ? "" : toBlobType(toDOMString(type)) };
}

/** https://w3c.github.io/FileAPI/#slice-blob: an offset from the start, or from the end if negative. */
function clampPosition(position, size) {
  return position < 0 ? Math.max(size + position, 0) : Math.min(position, size);
}

export class Blob {
  #bytes;
  #type;

  /** https://w3c.github.io/FileAPI/#constructorBlob */
  constructor(blobParts = undefined, options = undefined) {
    if (blobParts === INTERNAL) {
      this.#bytes = options.bytes;
      this.#type = options.type;
      return;
    }
    const parts = blobParts === undefined ? [] : toSequence(blobParts, "Blob constructor", toPart);
    const { endings, type } = readOptions(options);
    this.#bytes = processParts(parts, endings);
    this.#type = type;
  }

  get size() {
    return this.#bytes.length;
  }

  get type() {
    return this.#type;
  }

  /** https://w3c.github.io/FileAPI/#dfn-slice */
  slice(start = undefined, end = undefined, contentType = undefined) {
    const bytes = this.#bytes;
    const { length } = bytes;
    const from = start === undefined ? 0 : clampPosition(toClampedLong(start), length);
    const to = end === undefined ? length : clampPosition(toClampedLong(end), length);
    const type = contentType === undefined ? "" : toBlobType(toDOMString(contentType));
    return createBlob(bytes.subarray(from, Math.max(from, to)), type);
  }

  /** https://w3c.github.io/FileAPI/#dom-blob-stream */
  stream() {
    const bytes = this.#bytes;
    let position = 0;
    return new ReadableStream({
      type: "bytes",
      [PLAIN]: true,
      pull(controller) {
        if (position < bytes.length) {
          const chunk = bytes.slice(position, position + CHUNK);
          position += chunk.length;
          controller.enqueue(chunk);
        }
        if (position < bytes.length) return;
        controller.close();
        controller.byobRequest?.respond(0);
      },
    });
  }

  /** https://w3c.github.io/FileAPI/#dom-blob-textstream */
  textStream() {
    return this.stream().pipeThrough(new (lazy("encoding/text_streams.js").TextDecoderStream)());
  }

  /** https://w3c.github.io/FileAPI/#dom-blob-text */
  async text() {
    return decodeText(this.#bytes);
  }

  /** https://w3c.github.io/FileAPI/#dom-blob-arraybuffer */
  async arrayBuffer() {
    return this.#bytes.slice().buffer;
  }

  /** https://w3c.github.io/FileAPI/#dom-blob-bytes */
  async bytes() {
    return this.#bytes.slice();
  }

  static {
    isBlob = (value) => typeof value === "object" && value !== null && #bytes in value;
    blobBytes = (value) => (isBlob(value) ? value.#bytes : undefined);
    blobType = (blob) => blob.#type;
    createBlob = (bytes, type) => new Blob(INTERNAL, { bytes, type });
  }
}

defineInterface(Blob, {
  name: "Blob",
  describe: ({ size, type }) => ({ size, type }),
  clone: (blob) => createBlob(blobBytes(blob), blobType(blob)),
});
