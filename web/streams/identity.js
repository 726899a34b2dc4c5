// https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/
//
// Cloudflare's byte streams: chunks pass through unchanged, a write resolves when its chunk has been read, and the readable side
// can fill a buffer of the reader.
import { createGatedPair } from "./gated.js";
import { setLength } from "./lengths.js";
import { defineInterface } from "../internal/platform.js";
import { bytesOf, isBufferSource, requireArguments, toDictionary } from "../internal/webidl.js";

function toChunk(chunk) {
  if (isBufferSource(chunk)) return bytesOf(chunk).slice(); // a copy, because the stream detaches the buffer
  throw new TypeError("The chunk written to a byte stream is neither an ArrayBuffer nor a view of one.");
}

function toStrategy(options) {
  if (options === undefined) return undefined;
  const { highWaterMark } = toDictionary(options, "IdentityTransformStream constructor");
  return highWaterMark === undefined ? undefined : { highWaterMark, size: (chunk) => chunk.byteLength };
}

function createIdentity(check, writableStrategy) {
  return createGatedPair({
    type: "bytes",
    writableStrategy,
    *pieces(chunk) {
      const bytes = toChunk(chunk);
      check(bytes.length, false);
      if (bytes.length > 0) yield bytes;
    },
    ending() {
      check(0, true);
      return [];
    },
  });
}

let setPair; // (IdentityTransformStream, pair), for the subclass

export class IdentityTransformStream {
  #pair;

  constructor(queuingStrategy = undefined) {
    this.#pair = createIdentity(() => {}, toStrategy(queuingStrategy));
  }

  get readable() {
    return this.#pair.readable;
  }

  get writable() {
    return this.#pair.writable;
  }

  static {
    setPair = (stream, pair) => {
      stream.#pair = pair;
    };
  }
}

function toLength(value) {
  const length = typeof value === "bigint" ? Number(value) : Math.trunc(Number(value));
  if (Number.isSafeInteger(length) && length >= 0) return length;
  throw new TypeError("FixedLengthStream constructor: the length is not a number of bytes.");
}

export class FixedLengthStream extends IdentityTransformStream {
  constructor(expectedLength, queuingStrategy = undefined) {
    requireArguments(arguments.length, 1, "FixedLengthStream constructor");
    super();
    let left = toLength(expectedLength);
    const check = (amount, isEnd) => {
      left -= amount;
      if (left < 0) throw new TypeError("More bytes were written to a FixedLengthStream than its length.");
      if (isEnd && left > 0) throw new TypeError("A FixedLengthStream was closed before all its bytes were written.");
    };
    const pair = createIdentity(check, toStrategy(queuingStrategy));
    setLength(pair.readable, left);
    setPair(this, pair);
  }
}

defineInterface(IdentityTransformStream, { name: "IdentityTransformStream" });
defineInterface(FixedLengthStream, { name: "FixedLengthStream" });
