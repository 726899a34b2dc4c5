// https://wicg.github.io/webcrypto-modern-algos/#ml-dsa and #ml-kem
import { native } from "../internal/native.js";
import { halfKey, keyPair, requirePrivateUsage, requireType } from "./asymmetric.js";
import { dataError, notSupported, operationError, resultOf } from "./errors.js";
import { viewOf } from "./idl.js";
import { checkJsonWebKey, decodeMember, encodeMember } from "./jwk.js";
import { bufferSource, defineAlgorithm, optional } from "./registry.js";
import { checkUsages } from "./symmetric.js";

const EMPTY = new Uint8Array(0);
const SIGNATURES = { publicUsages: ["verify"], privateUsages: ["sign"], use: "sig", seed: 32 };
const ENCAPSULATION = {
  publicUsages: ["encapsulateKey", "encapsulateBits"],
  privateUsages: ["decapsulateKey", "decapsulateBits"],
  use: "enc",
  seed: 64,
};

// Numbers of crypto_pq.cc. `arc` is the last byte of the identifier 2.16.840.1.101.3.4.3.x or .4.4.x.
const SCHEMES = [
  { name: "ML-DSA-44", arc: [3, 17], size: 1312, ...SIGNATURES },
  { name: "ML-DSA-65", arc: [3, 18], size: 1952, ...SIGNATURES },
  { name: "ML-DSA-87", arc: [3, 19], size: 2592, ...SIGNATURES },
  { name: "ML-KEM-512", arc: [4, 1], size: 800, ...ENCAPSULATION },
  { name: "ML-KEM-768", arc: [4, 2], size: 1184, ...ENCAPSULATION },
  { name: "ML-KEM-1024", arc: [4, 3], size: 1568, ...ENCAPSULATION },
];

// --- DER, whose only variable part is the key at its end ---

const identifier = ([arc, last]) => [0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, arc, last];
const twoBytes = (length) => [0x82, length >> 8, length & 255];

function spkiPrefix({ arc, size }) {
  const bits = [0x03, ...twoBytes(size + 1), 0x00];
  return Uint8Array.of(0x30, ...twoBytes(13 + bits.length + size), ...identifier(arc), ...bits);
}

// The form of a private key that has only the seed, one of three.
function pkcs8Prefix({ arc, seed }) {
  return Uint8Array.of(0x30, seed + 20, 0x02, 0x01, 0x00, ...identifier(arc), 0x04, seed + 2, 0x80, seed);
}

function join(prefix, key) {
  const whole = new Uint8Array(prefix.length + key.byteLength);
  whole.set(prefix);
  whole.set(new Uint8Array(key), prefix.length);
  return whole.buffer;
}

function split(prefix, data, size, scheme) {
  const bytes = viewOf(data);
  if (bytes.length === prefix.length + size && prefix.every((byte, at) => bytes[at] === byte)) return bytes.subarray(prefix.length);
  // A private key may also be expanded, with or without its seed. The identifier is in the same place.
  const isOther = scheme !== undefined && bytes.length > 100 && identifier(scheme.arc).every((byte, at) => bytes[7 + at] === byte);
  if (isOther) throw notSupported("A private key in expanded form cannot be imported; its seed can.");
  throw dataError("The data is not a valid key of this algorithm.");
}

function keyOperations(scheme, number) {
  const { name, publicUsages, privateUsages, use, seed, size } = scheme;

  function make(bytes, isPrivate) {
    const handle = native.importPq(number, bytes, isPrivate);
    if (handle === undefined) throw dataError(`A ${isPrivate ? "seed" : "public key"} of ${name} has ${isPrivate ? seed : size} bytes.`);
    return halfKey(isPrivate ? "private" : "public", { name }, handle);
  }

  function generateKey(algorithm, extractable, usages) {
    checkUsages(usages, [...publicUsages, ...privateUsages]);
    requirePrivateUsage(usages, privateUsages);
    const handle = native.generatePq(number);
    if (handle === undefined) throw operationError("The key could not be generated.");
    return keyPair({ name }, handle, extractable, usages, publicUsages, privateUsages);
  }

  function importJwk(keyData, extractable, usages) {
    const isPrivate = keyData.priv !== undefined;
    checkUsages(usages, isPrivate ? privateUsages : publicUsages);
    checkJsonWebKey(keyData, "AKP", use, extractable, usages);
    if (keyData.alg !== name) throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${name}.`);
    const pub = decodeMember(keyData, "pub");
    if (!isPrivate) return make(pub, false);
    const key = make(decodeMember(keyData, "priv"), true);
    const own = new Uint8Array(native.pqPart(key.handle, false));
    if (pub.length !== own.length || !native.equalBytes(pub, own)) {
      throw dataError("The public part of the JSON Web Key does not belong to its private part.");
    }
    return key;
  }

  function importKey(format, keyData, algorithm, extractable, usages) {
    if (format === "jwk") return importJwk(keyData, extractable, usages);
    const isPrivate = format === "pkcs8" || format === "raw-seed";
    if (!isPrivate && format !== "spki" && format !== "raw-public") throw notSupported(`A key of ${name} cannot be imported from "${format}".`);
    checkUsages(usages, isPrivate ? privateUsages : publicUsages);
    if (format === "spki") return make(split(spkiPrefix(scheme), keyData, size), false);
    if (format === "pkcs8") return make(split(pkcs8Prefix(scheme), keyData, seed, scheme), true);
    return make(viewOf(keyData), isPrivate);
  }

  function exportKey(format, key) {
    const isPrivate = format === "pkcs8" || format === "raw-seed";
    if (isPrivate || format === "spki" || format === "raw-public") requireType(key, isPrivate ? "private" : "public");
    else if (format !== "jwk") throw notSupported(`A key of ${name} cannot be exported as "${format}".`);
    const part = native.pqPart(key.handle, isPrivate);
    if (part === undefined) throw operationError("The key could not be exported.");
    if (format === "spki") return join(spkiPrefix(scheme), part);
    if (format === "pkcs8") return join(pkcs8Prefix(scheme), part);
    if (format !== "jwk") return part;
    const jwk = { kty: "AKP", alg: name, pub: encodeMember(part) };
    if (key.type === "private") jwk.priv = encodeMember(native.pqPart(key.handle, true));
    jwk.key_ops = [...key.usages];
    jwk.ext = key.extractable;
    return jwk;
  }

  return {
    generateKey: [[], generateKey],
    importKey: [[], importKey],
    exportKey: [[], exportKey],
    "get public key": [[], () => publicUsages],
  };
}

// --- ML-DSA ---

const CONTEXT_PARAMS = [optional("context", ...bufferSource)];

function checkContext(context) {
  if (context.length > 255) throw operationError("A context has at most 255 bytes.");
}

function sign({ context = EMPTY }, key, data) {
  requireType(key, "private");
  checkContext(context);
  return resultOf(native.signPq(key.handle, data, context), "The signature failed.");
}

function verify({ context = EMPTY }, key, signature, data) {
  requireType(key, "public");
  checkContext(context);
  return resultOf(native.verifyPq(key.handle, signature, data, context), "The signature could not be verified.");
}

// --- ML-KEM ---

/** Returns { sharedKey, ciphertext }, both ArrayBuffers. */
function encapsulate(algorithm, key) {
  requireType(key, "public");
  const [ciphertext, sharedKey] = native.encapsulate(key.handle) ?? [];
  if (ciphertext === undefined) throw operationError("The encapsulation failed.");
  return { sharedKey, ciphertext };
}

function decapsulate(algorithm, key, ciphertext) {
  requireType(key, "private");
  return resultOf(native.decapsulate(key.handle, ciphertext), "The decapsulation failed.");
}

SCHEMES.forEach((scheme, number) => {
  const isSignature = scheme.use === "sig";
  const uses = isSignature
    ? { sign: [CONTEXT_PARAMS, sign], verify: [CONTEXT_PARAMS, verify] }
    : { encapsulate: [[], encapsulate], decapsulate: [[], decapsulate] };
  defineAlgorithm(scheme.name, { ...uses, ...keyOperations(scheme, number) });
});
