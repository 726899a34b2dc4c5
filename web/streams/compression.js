// https://compression.spec.whatwg.org/
import { createGatedPair, toBytes } from "./gated.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments } from "../internal/webidl.js";
import { isOn } from "../worker/compatibility.js";

const FORMATS = ["deflate", "deflate-raw", "gzip"]; // in the order of the numbers in C++
const PIECE = 65536;
const NOTHING = new Uint8Array(0);
// The status of a step.
const ENDED = 1;
const BROKEN = 2;
const NO_MEMORY = 3;

const result = new Uint32Array(3); // of the last step: bytes read, bytes written, status

const HELD = 16 * 1024 * 1024; // bytes of output that nobody has read; a write that makes more waits for a reader
const isStrict = isOn("strict_compression_checks");

function toFormat(format) {
  const name = `${format}`;
  if (FORMATS.includes(name)) return name;
  throw new TypeError("The compression format must be either 'deflate', 'deflate-raw' or 'gzip'.");
}

// zlib, in steps small enough to be interrupted.
export class Zlib {
  #state;
  #output = new Uint8Array(PIECE);
  isEnded = false;
  left = 0; // bytes of the last input after the end of the compressed data
  fault = null; // zlib's message for invalid data

  constructor(format, inflates) {
    this.#state = native.zlibOpen(FORMATS.indexOf(format), inflates);
  }

  /** Starts over, for data that follows the end. */
  reset() {
    native.zlibReset(this.#state);
    this.isEnded = false;
    this.left = 0;
  }

  /** The output for `input`, up to the end of the format; with `finish` also everything that was held back. */
  *pieces(input, finish) {
    const { length } = input;
    let at = 0;
    for (;;) {
      const detail = native.zlibStep(this.#state, input, at, this.#output, finish, result);
      const [taken, given, status] = result;
      at += taken;
      if (status === BROKEN) {
        this.fault = detail ?? "invalid data";
        throw new TypeError("Decompression failed.");
      }
      if (status === NO_MEMORY) throw new RangeError("There is not enough memory to compress or decompress.");
      this.isEnded = status === ENDED;
      if (this.isEnded) this.left = length - at;
      if (given > 0) yield this.#output.slice(0, given);
      if (input.length !== length) throw new TypeError("The chunk was detached or resized before it was read to its end.");
      if (this.isEnded || (at === length && given < PIECE && !finish)) return;
    }
  }
}

/** https://compression.spec.whatwg.org/#compress-and-enqueue-a-chunk and #compress-flush-and-enqueue. */
function createCompressor(format) {
  const zlib = new Zlib(format, false);
  return createGatedPair({
    held: HELD,
    *pieces(chunk) {
      const bytes = toBytes(chunk);
      if (bytes.length > 0) yield* zlib.pieces(bytes, false);
    },
    ending: () => zlib.pieces(NOTHING, true),
  });
}

/** https://compression.spec.whatwg.org/#decompress-and-enqueue-a-chunk and #decompress-flush-and-enqueue. */
function createDecompressor(format) {
  const zlib = new Zlib(format, true);
  return createGatedPair({
    held: HELD,
    *pieces(chunk) {
      const bytes = toBytes(chunk);
      if (bytes.length === 0) return;
      if (!zlib.isEnded) yield* zlib.pieces(bytes, false);
      else zlib.left = bytes.length;
      if (zlib.left > 0 && isStrict) throw new TypeError("Trailing bytes after end of compressed data");
    },
    ending() {
      if (!zlib.isEnded && isStrict) throw new TypeError("Called close() on a decompression stream with incomplete data");
      return [];
    },
  });
}

export class CompressionStream {
  #pair;

  /** https://compression.spec.whatwg.org/#dom-compressionstream-compressionstream */
  constructor(format) {
    requireArguments(arguments.length, 1, "CompressionStream constructor");
    this.#pair = createCompressor(toFormat(format));
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
    this.#pair = createDecompressor(toFormat(format));
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
