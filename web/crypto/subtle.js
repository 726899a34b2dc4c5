// https://w3c.github.io/webcrypto/#subtlecrypto-interface
//
// All methods are async, so errors of conversions become rejections, as Web IDL requires. Conversions and normalization happen
// synchronously. The result of the steps that the standard runs in parallel comes later. There is no await in between, so later
// changes to a worker's buffers have no effect.
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { illegalConstructor, isBufferSource, requireArguments, toEnum } from "../internal/webidl.js";
import { accessError, notSupported, resultOf, syntaxError } from "./errors.js";
import { toBufferSource, toObjectOrString, toSequenceOf, toUnsignedLong, viewOf } from "./idl.js";
import { createKey, intersectUsages, stateOf, USAGES } from "./key.js";
import { normalizeAlgorithm, operationOf } from "./registry.js";

const INTERNAL = Symbol("made by the platform");
// The last four are from https://wicg.github.io/webcrypto-modern-algos/#dom-keyformat
const FORMATS = ["raw", "spki", "pkcs8", "jwk", "raw-public", "raw-private", "raw-seed", "raw-secret"];

// Algorithms for which "raw" means the same as "raw-secret", or as "raw-public".
const SECRETS = /^(AES-(CTR|CBC|GCM|KW)|HMAC|HKDF|PBKDF2)$/;
const PUBLICS = /^(ECDSA|ECDH|Ed25519|X25519|Ed448|X448)$/;

function formatFor(name, format) {
  if (format === "raw-secret" && SECRETS.test(name)) return "raw";
  return format === "raw-public" && PUBLICS.test(name) ? "raw" : format;
}

const toFormat = (value) => toEnum(value, FORMATS, "KeyFormat");
const toUsages = (value) => toSequenceOf((usage) => toEnum(usage, USAGES, "KeyUsage"), value, "keyUsages");
const toData = (value) => toBufferSource(value, "SubtleCrypto");

function toKey(value) {
  const state = stateOf(value);
  if (state === undefined) throw new TypeError("The value is not a CryptoKey.");
  return state;
}

// (BufferSource or JsonWebKey), depending on the format.
function toKeyData(value, format) {
  const isBuffer = isBufferSource(value);
  if (format === "jwk") {
    if (isBuffer) throw new TypeError('Import data provided for "jwk" import format must be a JsonWebKey.');
    return lazy("crypto/jwk.js").toJsonWebKey(value);
  }
  if (!isBuffer) throw new TypeError("Import data provided for \"raw\", \"pkcs8\", or \"spki\" import formats must be a buffer source.");
  return toData(value);
}

/** The checks before every use of a key. */
function requireUse(key, algorithm, usage) {
  if (key.algorithm.name !== algorithm.name) {
    throw accessError(`Requested algorithm "${algorithm.name}" does not match this CryptoKey's algorithm "${key.algorithm.name}".`);
  }
  if (!key.usages.includes(usage)) throw accessError(`Requested key usage "${usage}" does not match any usage listed in this CryptoKey.`);
}

/** The last steps of every key import. */
function finishKey(key, extractable, usages) {
  if ((key.type === "secret" || key.type === "private") && usages.length === 0) {
    throw syntaxError("Secret/private CryptoKeys must have at least one usage.");
  }
  key.extractable = extractable;
  key.usages = intersectUsages(usages, USAGES);
  return createKey(key);
}

/** Imports a derived or agreed secret as a key. */
function importSecretAs(target, secret, extractable, usages) {
  return finishKey(target.run(formatFor(target.name, "raw-secret"), secret, target, extractable, usages), extractable, usages);
}

function requireExportable(key) {
  const run = operationOf(key.algorithm.name, "exportKey");
  if (run === undefined) throw notSupported(`A key of ${key.algorithm.name} cannot be exported.`);
  if (!key.extractable) throw accessError(`Attempt to export non-extractable ${key.algorithm.name} key.`);
  return run;
}

// AES-KW has its own operation to wrap keys; the others use encryption.
function normalizeWrapping(algorithm, operation, otherwise) {
  try {
    return normalizeAlgorithm(algorithm, operation);
  } catch {
    return normalizeAlgorithm(algorithm, otherwise);
  }
}

// AES-KW needs whole blocks of 8 bytes, and JSON may end in spaces.
function jsonBytes(jwk, algorithmName) {
  const bytes = encodeText(JSON.stringify(jwk));
  if (algorithmName !== "AES-KW" || bytes.length % 8 === 0) return bytes;
  const padded = new Uint8Array(Math.ceil(bytes.length / 8) * 8).fill(0x20);
  padded.set(bytes);
  return padded;
}

// Adds the microtasks by which the promise of an async function settles after a promise that it returns.
async function inParallel(steps) {
  return steps();
}

export class SubtleCrypto {
  #isSubtle = true;

  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-encrypt */
  async encrypt(algorithm, key, data) {
    this.#isSubtle;
    requireArguments(arguments.length, 3, "SubtleCrypto.encrypt");
    const [given, state, bytes] = [toObjectOrString(algorithm), toKey(key), toData(data)];
    const normalized = normalizeAlgorithm(given, "encrypt");
    return inParallel(() => {
      requireUse(state, normalized, "encrypt");
      return normalized.run(normalized, state, viewOf(bytes));
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-decrypt */
  async decrypt(algorithm, key, data) {
    this.#isSubtle;
    requireArguments(arguments.length, 3, "SubtleCrypto.decrypt");
    const [given, state, bytes] = [toObjectOrString(algorithm), toKey(key), toData(data)];
    const normalized = normalizeAlgorithm(given, "decrypt");
    return inParallel(() => {
      requireUse(state, normalized, "decrypt");
      return normalized.run(normalized, state, viewOf(bytes));
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-sign */
  async sign(algorithm, key, data) {
    this.#isSubtle;
    requireArguments(arguments.length, 3, "SubtleCrypto.sign");
    const [given, state, bytes] = [toObjectOrString(algorithm), toKey(key), toData(data)];
    const normalized = normalizeAlgorithm(given, "sign");
    return inParallel(() => {
      requireUse(state, normalized, "sign");
      return normalized.run(normalized, state, viewOf(bytes));
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-verify */
  async verify(algorithm, key, signature, data) {
    this.#isSubtle;
    requireArguments(arguments.length, 4, "SubtleCrypto.verify");
    const [given, state] = [toObjectOrString(algorithm), toKey(key)];
    const [mark, bytes] = [toData(signature), toData(data)];
    const normalized = normalizeAlgorithm(given, "verify");
    return inParallel(() => {
      requireUse(state, normalized, "verify");
      return normalized.run(normalized, state, viewOf(mark), viewOf(bytes));
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-digest */
  async digest(algorithm, data) {
    this.#isSubtle;
    requireArguments(arguments.length, 2, "SubtleCrypto.digest", "string or HashAlgorithm", "BufferSource");
    const [given, bytes] = [toObjectOrString(algorithm), toData(data)];
    const normalized = normalizeAlgorithm(given, "digest");
    return resultOf(normalized.run(normalized, viewOf(bytes)), "The digest could not be computed.");
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-generateKey */
  async generateKey(algorithm, extractable, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 3, "SubtleCrypto.generateKey");
    const [given, isExtractable, usages] = [toObjectOrString(algorithm), !!extractable, toUsages(keyUsages)];
    const normalized = normalizeAlgorithm(given, "generateKey");
    return inParallel(async () => {
      const result = await normalized.run(normalized, isExtractable, usages);
      if (result.privateKey === undefined) return finishKey(result, isExtractable, usages);
      return { privateKey: createKey(result.privateKey), publicKey: createKey(result.publicKey) };
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-deriveKey */
  async deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 5, "SubtleCrypto.deriveKey");
    const [given, state] = [toObjectOrString(algorithm), toKey(baseKey)];
    const [wanted, isExtractable, usages] = [toObjectOrString(derivedKeyType), !!extractable, toUsages(keyUsages)];
    const normalized = normalizeAlgorithm(given, "deriveBits");
    const target = normalizeAlgorithm(wanted, "importKey");
    const measure = normalizeAlgorithm(wanted, "get key length");
    return inParallel(async () => {
      requireUse(state, normalized, "deriveKey");
      const secret = await normalized.run(normalized, state, measure.run(measure));
      return importSecretAs(target, secret, isExtractable, usages);
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-deriveBits */
  async deriveBits(algorithm, baseKey, length = null) {
    this.#isSubtle;
    requireArguments(arguments.length, 2, "SubtleCrypto.deriveBits");
    const [given, state] = [toObjectOrString(algorithm), toKey(baseKey)];
    const bits = length === null ? null : toUnsignedLong(length, "SubtleCrypto.deriveBits");
    const normalized = normalizeAlgorithm(given, "deriveBits");
    return inParallel(() => {
      requireUse(state, normalized, "deriveBits");
      return normalized.run(normalized, state, bits);
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-importKey */
  async importKey(format, keyData, algorithm, extractable, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 5, "SubtleCrypto.importKey");
    const form = toFormat(format);
    const data = toKeyData(keyData, form);
    const [given, isExtractable, usages] = [toObjectOrString(algorithm), !!extractable, toUsages(keyUsages)];
    const normalized = normalizeAlgorithm(given, "importKey");
    return inParallel(() =>
      finishKey(normalized.run(formatFor(normalized.name, form), data, normalized, isExtractable, usages), isExtractable, usages),
    );
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-exportKey */
  async exportKey(format, key) {
    this.#isSubtle;
    requireArguments(arguments.length, 2, "SubtleCrypto.exportKey");
    const [form, state] = [toFormat(format), toKey(key)];
    return inParallel(() => requireExportable(state)(formatFor(state.algorithm.name, form), state));
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-wrapKey */
  async wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    this.#isSubtle;
    requireArguments(arguments.length, 4, "SubtleCrypto.wrapKey");
    const [form, state, wrapping] = [toFormat(format), toKey(key), toKey(wrappingKey)];
    const normalized = normalizeWrapping(toObjectOrString(wrapAlgorithm), "wrapKey", "encrypt");
    return inParallel(() => {
      requireUse(wrapping, normalized, "wrapKey");
      const exported = requireExportable(state)(formatFor(state.algorithm.name, form), state);
      const bytes = form === "jwk" ? jsonBytes(exported, normalized.name) : new Uint8Array(exported);
      return normalized.run(normalized, wrapping, bytes);
    });
  }

  /** https://w3c.github.io/webcrypto/#SubtleCrypto-method-unwrapKey */
  async unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 7, "SubtleCrypto.unwrapKey");
    const [form, data, unwrapping] = [toFormat(format), toData(wrappedKey), toKey(unwrappingKey)];
    const [given, wanted] = [toObjectOrString(unwrapAlgorithm), toObjectOrString(unwrappedKeyAlgorithm)];
    const [isExtractable, usages] = [!!extractable, toUsages(keyUsages)];
    const normalized = normalizeWrapping(given, "unwrapKey", "decrypt");
    const target = normalizeAlgorithm(wanted, "importKey");
    return inParallel(async () => {
      requireUse(unwrapping, normalized, "unwrapKey");
      const bytes = await normalized.run(normalized, unwrapping, viewOf(data));
      const keyData = form === "jwk" ? lazy("crypto/jwk.js").parseJsonWebKey(new Uint8Array(bytes)) : bytes;
      return finishKey(target.run(formatFor(target.name, form), keyData, target, isExtractable, usages), isExtractable, usages);
    });
  }

  /** https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-encapsulateKey */
  async encapsulateKey(encapsulationAlgorithm, encapsulationKey, sharedKeyAlgorithm, extractable, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 5, "SubtleCrypto.encapsulateKey");
    const [given, state] = [toObjectOrString(encapsulationAlgorithm), toKey(encapsulationKey)];
    const [wanted, isExtractable, usages] = [toObjectOrString(sharedKeyAlgorithm), !!extractable, toUsages(keyUsages)];
    const normalized = normalizeAlgorithm(given, "encapsulate");
    const target = normalizeAlgorithm(wanted, "importKey");
    return inParallel(() => {
      requireUse(state, normalized, "encapsulateKey");
      const { sharedKey, ciphertext } = normalized.run(normalized, state);
      return { sharedKey: importSecretAs(target, sharedKey, isExtractable, usages), ciphertext };
    });
  }

  /** https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-encapsulateBits */
  async encapsulateBits(encapsulationAlgorithm, encapsulationKey) {
    this.#isSubtle;
    requireArguments(arguments.length, 2, "SubtleCrypto.encapsulateBits");
    const [given, state] = [toObjectOrString(encapsulationAlgorithm), toKey(encapsulationKey)];
    const normalized = normalizeAlgorithm(given, "encapsulate");
    return inParallel(() => {
      requireUse(state, normalized, "encapsulateBits");
      return normalized.run(normalized, state);
    });
  }

  /** https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-decapsulateKey */
  async decapsulateKey(decapsulationAlgorithm, decapsulationKey, ciphertext, sharedKeyAlgorithm, extractable, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 6, "SubtleCrypto.decapsulateKey");
    const [given, state, data] = [toObjectOrString(decapsulationAlgorithm), toKey(decapsulationKey), toData(ciphertext)];
    const [wanted, isExtractable, usages] = [toObjectOrString(sharedKeyAlgorithm), !!extractable, toUsages(keyUsages)];
    const normalized = normalizeAlgorithm(given, "decapsulate");
    const target = normalizeAlgorithm(wanted, "importKey");
    return inParallel(async () => {
      requireUse(state, normalized, "decapsulateKey");
      return importSecretAs(target, await normalized.run(normalized, state, viewOf(data)), isExtractable, usages);
    });
  }

  /** https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-decapsulateBits */
  async decapsulateBits(decapsulationAlgorithm, decapsulationKey, ciphertext) {
    this.#isSubtle;
    requireArguments(arguments.length, 3, "SubtleCrypto.decapsulateBits");
    const [given, state, data] = [toObjectOrString(decapsulationAlgorithm), toKey(decapsulationKey), toData(ciphertext)];
    const normalized = normalizeAlgorithm(given, "decapsulate");
    return inParallel(() => {
      requireUse(state, normalized, "decapsulateBits");
      return normalized.run(normalized, state, viewOf(data));
    });
  }

  /** https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-getPublicKey */
  async getPublicKey(key, keyUsages) {
    this.#isSubtle;
    requireArguments(arguments.length, 2, "SubtleCrypto.getPublicKey");
    const [state, usages] = [toKey(key), toUsages(keyUsages)];
    const { name } = state.algorithm;
    const publicUsages = operationOf(name, "get public key")?.();
    if (publicUsages === undefined) throw notSupported(`A key of ${name} has no public half.`);
    return inParallel(() => {
      if (state.type !== "private") throw accessError("The public half is that of a private key.");
      const wrong = usages.find((usage) => !publicUsages.includes(usage));
      if (wrong !== undefined) throw syntaxError(`A public key of ${name} cannot be used for "${wrong}".`);
      return createKey({ ...state, type: "public", extractable: true, usages: intersectUsages(usages, USAGES) });
    });
  }

  /** https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-supports */
  static supports(operation, algorithm, lengthOrAlgorithm = null) {
    requireArguments(arguments.length, 2, "SubtleCrypto.supports");
    return lazy("crypto/supports.js").supports(operation, algorithm, lengthOrAlgorithm);
  }

  /** https://developers.cloudflare.com/workers/runtime-apis/web-crypto/#timingsafeequal */
  timingSafeEqual(a, b) {
    this.#isSubtle;
    requireArguments(arguments.length, 2, "SubtleCrypto.timingSafeEqual");
    const [left, right] = [viewOf(toData(a)), viewOf(toData(b))];
    if (left.byteLength !== right.byteLength) throw new TypeError("Input buffers must have the same byte length.");
    return native.equalBytes(left, right);
  }
}

defineInterface(SubtleCrypto);

export const subtle = new SubtleCrypto(INTERNAL);
