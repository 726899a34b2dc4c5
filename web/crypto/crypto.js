// https://w3c.github.io/webcrypto/#Crypto-interface
import { DOMException, QuotaExceededError } from "../dom/exception.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor, requireArguments } from "../internal/webidl.js";
import { subtle } from "./subtle.js";

const INTERNAL = Symbol("made by the platform");
const QUOTA = 65536;
const typedArrayName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
).get;
const INTEGER_ARRAYS = [
  "Int8Array", "Int16Array", "Int32Array", "Uint8Array", "Uint16Array", "Uint32Array", "Uint8ClampedArray",
  "BigInt64Array", "BigUint64Array",
];

export class Crypto {
  #isCrypto = true;

  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  /** https://w3c.github.io/webcrypto/#Crypto-attribute-subtle */
  get subtle() {
    this.#isCrypto;
    return subtle;
  }

  /** https://developers.cloudflare.com/workers/runtime-apis/web-crypto/#digeststream-class */
  get DigestStream() {
    this.#isCrypto;
    return lazy("crypto/digest_stream.js").DigestStream;
  }

  /** https://w3c.github.io/webcrypto/#Crypto-method-getRandomValues */
  getRandomValues(array) {
    this.#isCrypto;
    requireArguments(arguments.length, 1, "Crypto.getRandomValues");
    if (!ArrayBuffer.isView(array)) throw new TypeError("Crypto.getRandomValues: the argument is not a typed array.");
    // Step 1.
    if (!INTEGER_ARRAYS.includes(typedArrayName.call(array))) {
      throw new DOMException("ArrayBufferView argument to getRandomValues() must be an integer-typed view.", "TypeMismatchError");
    }
    // Step 2.
    if (array.byteLength > QUOTA) {
      throw new QuotaExceededError(`getRandomValues() only accepts buffers of size <= 64K but provided ${array.byteLength} bytes.`);
    }
    // Steps 3 and 4.
    native.fillRandom(array);
    return array;
  }

  /** https://w3c.github.io/webcrypto/#Crypto-method-randomUUID */
  randomUUID() {
    this.#isCrypto;
    return native.randomUUID();
  }
}

defineInterface(Crypto);

export const crypto = new Crypto(INTERNAL);
