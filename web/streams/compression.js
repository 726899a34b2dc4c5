// https://compression.spec.whatwg.org/
import { createGatedPair } from "./gated.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { bytesOf, isArrayBuffer, isBufferSource, requireArguments, toEnum } from "../internal/webidl.js";

const FORMATS = ["deflate", "deflate-raw", "gzip"]; // by the number C++ knows them by
const PIECE = 65536;
const NOTHING = new Uint8Array(0);
// What a step says of itself.
const ENDED = 1;
const BROKEN = 2;
const NO_MEMORY = 3;

const result = new Uint32Array(3); // of the last step: bytes taken, bytes given, how it stands

function toChunk(chunk) {
  if (isBufferSource(chunk)) {
    const bytes = bytesOf(chunk);
    if (isArrayBuffer(bytes.buffer)) return bytes;
  }
  throw new TypeError("The chunk is neither an ArrayBuffer nor a view of one.");
}

// zlib, fed in pieces of a size that can be interrupted.
export class Zlib {
  #state;
  #output = new Uint8Array(PIECE);
  isEnded = false;

  constructor(format, inflates) {
    this.#state = native.zlibOpen(FORMATS.indexOf(format), inflates);
  }

  /** What comes out for `input`; with `finish`, everything that was held back too. */
  *pieces(input, finish) {
    let at = 0;
    for (;;) {
      native.zlibStep(this.#state, input, at, this.#output, finish, result);
      const [taken, given, status] = result;
      at += taken;
      if (status === BROKEN) throw new TypeError("The compressed data is not valid.");
      if (status === NO_MEMORY) throw new RangeError("There is not enough memory to compress or decompress.");
      this.isEnded = status === ENDED;
      if (given > 0) yield this.#output.slice(0, given);
      if (this.isEnded && at < input.length) throw new TypeError("There is more data after the end of the compressed data.");
      if (this.isEnded || (at === input.length && given < PIECE && !finish)) return;
    }
  }
}

/** https://compression.spec.whatwg.org/#compress-and-enqueue-a-chunk, and what follows the last one. */
function createCompressor(format) {
  const zlib = new Zlib(format, false);
  return createGatedPair({
    *pieces(chunk) {
      const bytes = toChunk(chunk);
      if (bytes.length > 0) yield* zlib.pieces(bytes, false);
    },
    ending: () => zlib.pieces(NOTHING, true),
  });
}

/** https://compression.spec.whatwg.org/#decompress-and-enqueue-a-chunk, and what is asked at the end. */
function createDecompressor(format) {
  const zlib = new Zlib(format, true);
  return createGatedPair({
    *pieces(chunk) {
      const bytes = toChunk(chunk);
      if (bytes.length === 0) return;
      if (zlib.isEnded) throw new TypeError("There is more data after the end of the compressed data.");
      yield* zlib.pieces(bytes, false);
    },
    ending() {
      if (!zlib.isEnded) throw new TypeError("The compressed data ends too early.");
      return [];
    },
  });
}

export class CompressionStream {
  #pair;

  /** https://compression.spec.whatwg.org/#dom-compressionstream-compressionstream */
  constructor(format) {
    requireArguments(arguments.length, 1, "CompressionStream constructor");
    this.#pair = createCompressor(toEnum(format, FORMATS, "CompressionStream constructor"));
  }

  get readable() {
    return this.#pair.readable;
  }

  get writable() {
    return this.#pair.writable;
  }
}

export class DecompressionStream {
  #pair;

  /** https://compression.spec.whatwg.org/#dom-decompressionstream-decompressionstream */
  constructor(format) {
    requireArguments(arguments.length, 1, "DecompressionStream constructor");
    this.#pair = createDecompressor(toEnum(format, FORMATS, "DecompressionStream constructor"));
  }

  get readable() {
    return this.#pair.readable;
  }

  get writable() {
    return this.#pair.writable;
  }
}

defineInterface(CompressionStream);
defineInterface(DecompressionStream);
