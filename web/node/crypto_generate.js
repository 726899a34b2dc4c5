// https://nodejs.org/api/crypto.html: key generation.
import { native } from "../internal/native.js";
import { opensslError } from "./crypto_faults.js";
import { findHash } from "./crypto_hash.js";
import { readEncoding } from "./crypto_key_options.js";
import { createSecretKey, makeKey, writeKey } from "./crypto_keys.js";
import { codedError, invalidArgument, invalidValue, outOfRange, requireFunction, requireNumber, requireString, requireUint32 } from "./errors.js";

const RAW = ["ed25519", "x25519", "ed448", "x448"]; // in the order of generateRaw in crypto_ec.cc
const POST_QUANTUM = ["ml-dsa-44", "ml-dsa-65", "ml-dsa-87", "ml-kem-512", "ml-kem-768", "ml-kem-1024"]; // of generatePq in crypto_pq.cc
// Larger keys take minutes to generate and seconds to use. The bounds of crypto_pairs.cc.
const MOST_RSA_BITS = 8192;
const MOST_BITS = 4096;

const isGiven = (value) => value !== undefined && value !== null;

function requireMost(value, name, most) {
  if (value > most) throw outOfRange(name, `<= ${most} in a worker`, value);
}

function hashOf(name, option, what) {
  if (name === undefined) return undefined;
  requireString(name, `options.${option}`);
  return () => {
    const hash = findHash(name);
    if (hash === undefined) throw codedError(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid ${what}: ${name}`);
    return hash.number;
  };
}

function readRsa(options, isPss) {
  const { modulusLength, publicExponent } = options;
  requireUint32(modulusLength, "options.modulusLength");
  if (isGiven(publicExponent)) requireUint32(publicExponent, "options.publicExponent");
  requireMost(modulusLength, "options.modulusLength", MOST_RSA_BITS);
  const exponent = publicExponent ?? 0x10001;
  if (!isPss) return () => native.makeRsa(modulusLength, exponent, false);
  const { saltLength } = options;
  if (saltLength !== undefined) {
    requireNumber(saltLength, "options.saltLength");
    if (!Number.isInteger(saltLength)) throw outOfRange("options.saltLength", "an integer", saltLength);
    if (saltLength < 0 || saltLength > 2 ** 31 - 1) throw outOfRange("options.saltLength", ">= 0 && <= 2147483647", saltLength);
  }
  const hash = hashOf(options.hashAlgorithm, "hashAlgorithm", "digest") ?? hashOf(options.hash, "hash", "digest");
  const mask = hashOf(options.mgf1HashAlgorithm, "mgf1HashAlgorithm", "MGF1 digest") ?? hashOf(options.mgf1Hash, "mgf1Hash", "MGF1 digest");
  const [hashNumber, maskNumber] = [hash?.(), mask?.()];
  return () => native.makeRsa(modulusLength, exponent, true, hashNumber, maskNumber, saltLength);
}

function incompatible(one, other) {
  return codedError(TypeError, "ERR_INCOMPATIBLE_OPTION_PAIR", `Option "${one}" cannot be used in combination with option "${other}"`);
}

function readDh(options) {
  const { group, prime, primeLength, generator } = options;
  if (isGiven(group)) {
    for (const other of ["prime", "primeLength", "generator"]) if (isGiven(options[other])) throw incompatible("group", other);
    requireString(group, "options.group");
    const known = native.dhGroup(group.toLowerCase());
    if (known === undefined) throw codedError(Error, "ERR_CRYPTO_UNKNOWN_DH_GROUP", "Unknown DH group");
    return () => native.makeDh(new Uint8Array(known), 2);
  }
  if (isGiven(prime)) {
    if (isGiven(primeLength)) throw incompatible("prime", "primeLength");
    if (!ArrayBuffer.isView(prime)) throw invalidArgument("options.prime", "an instance of Buffer, TypedArray, or DataView", prime);
  } else if (isGiven(primeLength)) {
    requireSize(primeLength, "options.primeLength");
    requireMost(primeLength, "options.primeLength", MOST_BITS);
  } else {
    throw codedError(TypeError, "ERR_MISSING_OPTION", "At least one of the group, prime, or primeLength options is required");
  }
  if (isGiven(generator)) requireSize(generator, "options.generator");
  return () => native.makeDh(prime ?? primeLength, generator ?? 2);
}

function requireSize(value, name) {
  requireNumber(value, name);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < 0 || value > 2 ** 31 - 1) throw outOfRange(name, ">= 0 && <= 2147483647", value);
}

// Each reads the options and returns a function that makes a handle, or a promise of one.
const TYPES = {
  __proto__: null,
  rsa: (options) => readRsa(options, false),
  "rsa-pss": (options) => readRsa(options, true),
  dsa({ modulusLength, divisorLength }) {
    requireUint32(modulusLength, "options.modulusLength");
    if (isGiven(divisorLength)) requireSize(divisorLength, "options.divisorLength");
    requireMost(modulusLength, "options.modulusLength", MOST_BITS);
    requireMost(divisorLength, "options.divisorLength", 512);
    return () => native.makeDsa(modulusLength, divisorLength ?? undefined);
  },
  ec({ namedCurve, paramEncoding }) {
    requireString(namedCurve, "options.namedCurve");
    if (isGiven(paramEncoding) && paramEncoding !== "named" && paramEncoding !== "explicit") throw invalidValue("options.paramEncoding", paramEncoding);
    return () => {
      const handle = native.makeEc(namedCurve, paramEncoding === "explicit");
      if (handle === undefined) throw codedError(TypeError, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
      return handle;
    };
  },
  dh: readDh,
};
RAW.forEach((name, number) => (TYPES[name] = () => () => native.generateRaw(number)));
POST_QUANTUM.forEach((name, number) => (TYPES[name] = () => () => native.generatePq(number)));
const NEED_OPTIONS = new Set(["rsa", "rsa-pss", "dsa", "ec", "dh"]);

function readEncodings(options, type) {
  const found = {};
  for (const [name, isPublic] of [["publicKeyEncoding", true], ["privateKeyEncoding", false]]) {
    const given = options[name];
    if (!isGiven(given)) continue;
    if (typeof given !== "object") throw invalidValue(`options.${name}`, given);
    found[name] = readEncoding(given, type, isPublic, `options.${name}`);
  }
  return found;
}

function prepare(type, options) {
  requireString(type, "type");
  if (options !== undefined && typeof options !== "object") throw invalidArgument("options", "of type object", options);
  const encodings = options === undefined ? {} : readEncodings(options, type);
  if (!(type in TYPES)) throw invalidValue("type", type, "must be a supported key type");
  if (NEED_OPTIONS.has(type) && options === undefined) throw invalidArgument("options", "of type object", options);
  const make = TYPES[type](options ?? {});
  const cipher = encodings.privateKeyEncoding?.cipher;
  if (cipher !== undefined && native.cipherInfo(cipher) === undefined) throw codedError(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
  const write = (state, encoding) => (encoding === undefined ? makeKey(state) : writeKey(state, encoding));
  const finish = (handle) => {
    if (typeof handle === "string") throw new Error(opensslError(handle, "The key could not be generated").message);
    if (handle === undefined || handle === null) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The key could not be generated within the CPU limit; see limits.cpu_ms");
    return {
      publicKey: write({ type: "public", handle }, encodings.publicKeyEncoding),
      privateKey: write({ type: "private", handle }, encodings.privateKeyEncoding),
    };
  };
  return { make, finish };
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeypairsynctype-options */
export function generateKeyPairSync(type, options = undefined) {
  const { make, finish } = prepare(type, options);
  return finish(native.onTheSpot(make));
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeypairtype-options-callback */
export function generateKeyPair(type, options, callback) {
  const [given, done] = typeof options === "function" ? [undefined, options] : [options, callback];
  requireFunction(done, "callback");
  const { make, finish } = prepare(type, given);
  Promise.resolve(make())
    .then(finish)
    .then(
      ({ publicKey, privateKey }) => done(null, publicKey, privateKey),
      (error) => done(error),
    );
}

Object.defineProperty(generateKeyPair, Symbol.for("nodejs.util.promisify.custom"), {
  value: async (type, options) => {
    const { make, finish } = prepare(type, options);
    return finish(await make());
  },
});

function prepareSecret(type, options) {
  requireString(type, "type");
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw invalidArgument("options", "of type object", options);
  const { length } = options;
  if (type === "hmac") {
    requireNumber(length, "options.length");
    if (!Number.isInteger(length)) throw outOfRange("options.length", "an integer", length);
    if (length < 8 || length > 2 ** 31 - 1) throw outOfRange("options.length", ">= 8 && <= 2147483647", length);
  } else if (type === "aes") {
    if (![128, 192, 256].includes(length)) throw invalidValue("options.length", length, "must be one of: 128, 192, 256");
  } else {
    throw invalidValue("type", type, "must be a supported key type");
  }
  return () => {
    const bytes = new Uint8Array(length >> 3);
    for (let at = 0; at < bytes.length; at += 65536) native.fillRandom(bytes.subarray(at, at + 65536));
    return createSecretKey(bytes);
  };
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeysynctype-options */
export function generateKeySync(type, options) {
  return prepareSecret(type, options)();
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeytype-options-callback */
export function generateKey(type, options, callback) {
  const [given, done] = typeof options === "function" ? [undefined, options] : [options, callback];
  const make = prepareSecret(type, given);
  requireFunction(done, "callback");
  Promise.resolve().then(() => done(null, make()));
}
