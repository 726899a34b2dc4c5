// https://developers.cloudflare.com/workers/runtime-apis/web-crypto/#digeststream-class: hashes the bytes written to it.
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { isBufferSource, requireArguments } from "../internal/webidl.js";
import { WritableStream } from "../streams/streams.js";
import { operationError } from "./errors.js";
import { toBufferSource, toObjectOrString, viewOf } from "./idl.js";
import { hashNumber, normalizeAlgorithm } from "./registry.js";

function toBytes(chunk) {
  if (typeof chunk === "string") return encodeText(chunk);
  if (isBufferSource(chunk)) return viewOf(toBufferSource(chunk, "DigestStream"));
  throw new TypeError("DigestStream is a byte stream but received an object of non-ArrayBuffer/ArrayBufferView/string type on its writable side.");
}

export class DigestStream extends WritableStream {
  #digest;
  #controller;
  #reject;
  #bytesWritten = 0n;

  constructor(algorithm) {
    requireArguments(arguments.length, 1, "DigestStream constructor");
    const hash = normalizeAlgorithm(toObjectOrString(algorithm), "digest");
    const { promise, resolve, reject } = Promise.withResolvers();
    const handle = native.beginDigest(hashNumber(hash));
    if (handle === undefined) throw operationError("Too many digests are under way.");
    let controller;
    super({
      start: (given) => void (controller = given),
      write: (chunk) => {
        try {
          const bytes = toBytes(chunk);
          native.updateDigest(handle, bytes);
          this.#bytesWritten += BigInt(bytes.byteLength);
        } catch (error) {
          reject(error);
          throw error;
        }
      },
      close: () => resolve(native.endDigest(handle)),
      abort: reject,
    });
    // A worker that does not read the digest gets no unhandled rejection.
    promise.then(undefined, () => {});
    this.#digest = promise;
    this.#controller = controller;
    this.#reject = reject;
  }

  get digest() {
    return this.#digest;
  }

  get bytesWritten() {
    return this.#bytesWritten;
  }

  [Symbol.dispose]() {
    const error = new TypeError("The DigestStream was disposed.");
    this.#controller.error(error);
    this.#reject(error);
  }
}

defineInterface(DigestStream, { name: "DigestStream", describe: (stream) => ({ bytesWritten: stream.bytesWritten }) });
