// https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/
//
// Cloudflare's byte streams: chunks pass through unchanged, a write resolves when its chunk has been read, and the readable side
// can fill a buffer of the reader.
import { createGatedPair, toBytes } from "./gated.js";
import { setLength, toLength } from "./lengths.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toDictionary } from "../internal/webidl.js";

function toStrategy(options) {
  if (options === undefined) return undefined;
  const { highWaterMark } = toDictionary(options, "IdentityTransformStream constructor");
  return highWaterMark === undefined ? undefined : { highWaterMark, size: (chunk) => chunk?.byteLength ?? chunk?.length ?? 0 };
}

/** `admit`: see gated.js. */
export function createIdentity(admit = undefined, writableStrategy = undefined) {
  return createGatedPair({
    writableStrategy,
    admit,
    *pieces(chunk) {
      if (chunk === undefined) return; // as at Cloudflare
      const bytes = toBytes(chunk);
      if (bytes.length > 0) yield bytes.slice(); // a copy, because the stream detaches the buffer
    },
    ending: () => [],
  });
}

let setPair; // (IdentityTransformStream, pair), for the subclass

export class IdentityTransformStream {
  #pair;

  constructor(queuingStrategy = undefined) {
    this.#pair = createIdentity(undefined, toStrategy(queuingStrategy));
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

export class FixedLengthStream extends IdentityTransformStream {
  constructor(expectedLength, queuingStrategy = undefined) {
    requireArguments(arguments.length, 1, "FixedLengthStream constructor");
    super();
    let left = toLength(expectedLength);
    const admit = (amount, isEnd) => {
      left -= amount;
      if (left < 0) return new TypeError("Attempt to write too many bytes through a FixedLengthStream.");
      return isEnd && left > 0 ? new TypeError("FixedLengthStream did not see all expected bytes before close().") : null;
    };
    const pair = createIdentity(admit, toStrategy(queuingStrategy));
    setLength(pair.readable, left);
    setPair(this, pair);
  }
}

defineInterface(IdentityTransformStream, { name: "IdentityTransformStream" });
defineInterface(FixedLengthStream, { name: "FixedLengthStream" });
