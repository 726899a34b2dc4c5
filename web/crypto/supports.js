// https://wicg.github.io/webcrypto-modern-algos/#SubtleCrypto-method-supports: whether an operation would succeed with a suitable key.
import { toDOMString } from "../internal/webidl.js";
import { toObjectOrString, toUnsignedLong } from "./idl.js";
import { hashBits, normalizeAlgorithm, operationOf } from "./registry.js";

const CURVES = { "P-256": 256, "P-384": 384, "P-521": 528 };
const AES_LENGTHS = [128, 192, 256];
const isAes = (name) => name.startsWith("AES-");

// Checks in addition to the normalization: operation -> (algorithm, length) -> boolean.

function mayGenerate({ name, length, namedCurve, modulusLength, publicExponent }) {
  if (isAes(name)) return AES_LENGTHS.includes(length);
  if (name === "HMAC") return length !== 0;
  if (namedCurve !== undefined) return CURVES[namedCurve] !== undefined;
  return modulusLength === undefined || isRsa(modulusLength, publicExponent);
}

function isRsa(modulusLength, publicExponent) {
  const exponent = publicExponent.reduce((number, byte) => number * 256n + BigInt(byte), 0n);
  return modulusLength >= 256 && modulusLength <= 8192 && exponent >= 3n && exponent % 2n === 1n && exponent < 1n << 64n;
}

function mayImport({ name, length, namedCurve }) {
  if (name === "HMAC") return length !== 0;
  return namedCurve === undefined || CURVES[namedCurve] !== undefined;
}

function mayEncrypt({ name, iv, counter, length, tagLength = 128 }) {
  switch (name) {
    case "AES-CBC":
      return iv.length === 16;
    case "AES-CTR":
      return counter.length === 16 && length >= 1 && length <= 128;
    case "AES-GCM":
      return iv.length >= 1 && [32, 64, 96, 104, 112, 120, 128].includes(tagLength);
    case "AES-OCB":
      return iv.length >= 1 && iv.length <= 15 && [64, 96, 128].includes(tagLength);
    case "ChaCha20-Poly1305":
      return iv.length === 12 && tagLength === 128;
    default:
      return true;
  }
}

function maySign({ context }) {
  return context === undefined || context.length <= 255;
}

function mayDerive({ name, hash, iterations, public: peer }, length) {
  if (name === "HKDF" || name === "PBKDF2") {
    if (length === null || length % 8 !== 0 || iterations === 0) return false;
    return name !== "HKDF" || length <= 255 * hashBits(hash);
  }
  if (peer.type !== "public" || peer.algorithm.name !== name) return false;
  const most = { X25519: 256, X448: 448 }[name] ?? CURVES[peer.algorithm.namedCurve];
  return length === null || length <= most;
}

const CHECKS = {
  __proto__: null,
  encrypt: mayEncrypt,
  decrypt: mayEncrypt,
  sign: maySign,
  verify: maySign,
  digest: () => true,
  generateKey: mayGenerate,
  importKey: mayImport,
  deriveBits: mayDerive,
  encapsulate: () => true,
  decapsulate: () => true,
};

function supportsPlainly(operation, algorithm, length) {
  const normalized = normalizeAlgorithm(algorithm, operation);
  return CHECKS[operation](normalized, length);
}

// True if a shared key of 32 bytes, as encapsulation produces, can become a key of this algorithm.
function takesSharedKey(algorithm) {
  const { name, length } = normalizeAlgorithm(algorithm, "importKey");
  if (name === "HMAC") return length === undefined || length === 256;
  return isAes(name) || ["ChaCha20-Poly1305", "HKDF", "PBKDF2"].includes(name);
}

function supportsDerivedKey(algorithm, additional) {
  const measure = normalizeAlgorithm(additional, "get key length");
  const length = measure.run(measure);
  return supportsPlainly("importKey", additional, null) && supportsPlainly("deriveBits", algorithm, length);
}

function nameOf(algorithm) {
  return toDOMString(typeof algorithm === "string" ? algorithm : algorithm.name);
}

function decide(operation, algorithm, length, additional) {
  switch (operation) {
    case "getPublicKey":
      return operationOf(nameOf(algorithm), "get public key") !== undefined;
    case "exportKey":
      return operationOf(nameOf(algorithm), "exportKey") !== undefined;
    case "deriveKey":
      return additional !== null && supportsDerivedKey(algorithm, additional);
    case "encapsulateKey":
    case "decapsulateKey":
      return (additional === null || takesSharedKey(additional)) && supportsPlainly(operation.slice(0, -3), algorithm, null);
    case "encapsulateBits":
    case "decapsulateBits":
      return supportsPlainly(operation.slice(0, -4), algorithm, null);
    case "wrapKey":
    case "unwrapKey":
      if (operationOf(nameOf(algorithm), operation) !== undefined) return true;
      return supportsPlainly(operation === "wrapKey" ? "encrypt" : "decrypt", algorithm, null);
    default:
      return operation in CHECKS && !operation.endsWith("capsulate") && supportsPlainly(operation, algorithm, length);
  }
}

/** `third` is a number of bits, or the algorithm of the key to create. */
export function supports(operation, algorithm, third) {
  const [wanted, given] = [toDOMString(operation), toObjectOrString(algorithm)];
  const isLength = third === null || third === undefined || typeof third === "number";
  const length = isLength && typeof third === "number" ? toUnsignedLong(third, "SubtleCrypto.supports") : null;
  const additional = isLength ? null : toObjectOrString(third);
  try {
    return decide(wanted, given, length, additional);
  } catch {
    return false;
  }
}
