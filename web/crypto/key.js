// https://w3c.github.io/webcrypto/#cryptokey-interface
//
// The key material is in C++ memory; `handle` is an opaque reference to it (engine/src/native/handles.h). Algorithms use the state
// of a CryptoKey, a plain object that no worker can reach: { type, extractable, algorithm, usages, handle }.
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor } from "../internal/webidl.js";
import { isOn } from "../worker/compatibility.js";

const INTERNAL = Symbol("made by the platform");

/** https://w3c.github.io/webcrypto/#dfn-RecognizedKeyUsage, in the order of the standard. */
export const USAGES = [
  "encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey", "encapsulateKey",
  "encapsulateBits", "decapsulateKey", "decapsulateBits",
];

export let createKey; // (state) => CryptoKey
export let stateOf; // (value) => state, or undefined if it is not a CryptoKey

/** https://w3c.github.io/webcrypto/#concept-usage-intersection */
export function intersectUsages(some, others) {
  return USAGES.filter((usage) => some.includes(usage) && others.includes(usage));
}

// A copy, because a worker may change the object it gets.
function copyAlgorithm({ hash, publicExponent, ...algorithm }) {
  if (publicExponent !== undefined) {
    const copy = publicExponent.slice();
    algorithm.publicExponent = isOn("crypto_preserve_public_exponent") ? copy : copy.buffer;
  }
  if (hash !== undefined) algorithm.hash = { name: hash.name };
  return algorithm;
}

export class CryptoKey {
  #state;
  #algorithm; // the value of the attribute, created on first access and then always the same
  #usages;

  constructor(token = undefined, state = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#state = state;
  }

  get type() {
    return this.#state.type;
  }

  get extractable() {
    return this.#state.extractable;
  }

  get algorithm() {
    return (this.#algorithm ??= copyAlgorithm(this.#state.algorithm));
  }

  get usages() {
    return (this.#usages ??= [...this.#state.usages]);
  }

  static {
    createKey = (state) => new CryptoKey(INTERNAL, state);
    stateOf = (value) => (typeof value === "object" && value !== null && #state in value ? value.#state : undefined);
  }
}

// https://w3c.github.io/webcrypto/#cryptokey-interface-clone: both objects share the key, which never changes.
defineInterface(CryptoKey, { name: "CryptoKey", clone: (key) => createKey(stateOf(key)) });

/** The state of a secret key. */
export function secretKey(algorithm, handle) {
  return { type: "secret", extractable: false, algorithm, usages: [], handle };
}
