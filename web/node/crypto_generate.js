// https://nodejs.org/api/crypto.html: key generation.
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { createPublicKey, createSecretKey, findCurve, generatedKey } from "./crypto_keys.js";
import { codedError, invalidValue, outOfRange, requireFunction, requireNumber, requireObject, requireString } from "./errors.js";

const ED25519 = 0; // numbers of importRaw in crypto_ec.cc
const X25519 = 1;

function exponentBytes(exponent) {
  requireNumber(exponent, "options.publicExponent");
  if (!(exponent >= 3 && exponent <= 0xffffffff && exponent % 2 === 1)) throw outOfRange("options.publicExponent", ">= 3 && <= 4294967295, and odd", exponent);
  return Buffer.from(exponent.toString(16).padStart(8, "0"), "hex");
}

// Each function reads the options and returns how to make a handle (or a promise of it) and a description of the key.
const TYPES = {
  rsa({ modulusLength, publicExponent = 0x10001 }) {
    requireNumber(modulusLength, "options.modulusLength");
    if (!(modulusLength >= 512 && modulusLength <= 8192)) throw outOfRange("options.modulusLength", ">= 512 && <= 8192", modulusLength);
    const exponent = exponentBytes(publicExponent);
    return { kind: 0, make: () => native.generateRsa(modulusLength, exponent) };
  },
  ec({ namedCurve }) {
    requireString(namedCurve, "options.namedCurve");
    const curve = findCurve(namedCurve);
    if (curve === -1) throw codedError(TypeError, "ERR_CRYPTO_INVALID_CURVE", `Invalid EC curve name: ${namedCurve}`);
    return { kind: 1, curve, make: () => native.generateEc(curve) };
  },
  ed25519: () => ({ kind: 2, make: () => native.generateRaw(ED25519) }),
  x25519: () => ({ kind: 3, make: () => native.generateRaw(X25519) }),
};

function prepare(type, options = {}) {
  requireString(type, "type");
  if (!Object.hasOwn(TYPES, type)) throw invalidValue("type", type, `must be one of ${Object.keys(TYPES).join(", ")}`);
  requireObject(options, "options");
  const { publicKeyEncoding, privateKeyEncoding } = options;
  if (privateKeyEncoding?.cipher !== undefined) {
    throw codedError(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", "Encrypted private keys are not supported: omit privateKeyEncoding.cipher.");
  }
  const { kind, curve, make } = TYPES[type](options);
  const finish = (handle) => {
    if (handle === undefined || handle === null) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The key could not be generated within the CPU limit.");
    const privateKey = generatedKey(kind, curve, handle);
    const publicKey = createPublicKey(privateKey);
    return {
      publicKey: publicKeyEncoding === undefined ? publicKey : publicKey.export(publicKeyEncoding),
      privateKey: privateKeyEncoding === undefined ? privateKey : privateKey.export(privateKeyEncoding),
    };
  };
  return { make, finish };
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeypairsynctype-options */
export function generateKeyPairSync(type, options = undefined) {
  const { make, finish } = prepare(type, options);
  return finish(native.onTheSpot(make));
}

function generate(type, options) {
  const { make, finish } = prepare(type, options);
  return Promise.resolve(make()).then(finish);
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeypairtype-options-callback */
export function generateKeyPair(type, options, callback) {
  const [given, done] = typeof options === "function" ? [undefined, options] : [options, callback];
  requireFunction(done, "callback");
  generate(type, given).then(
    ({ publicKey, privateKey }) => done(null, publicKey, privateKey),
    (error) => done(error),
  );
}

Object.defineProperty(generateKeyPair, Symbol.for("nodejs.util.promisify.custom"), { value: async (type, options) => generate(type, options) });

/** https://nodejs.org/api/crypto.html#cryptogeneratekeysynctype-options */
export function generateKeySync(type, options) {
  requireString(type, "type");
  requireObject(options, "options");
  const { length } = options;
  requireNumber(length, "options.length");
  if (type === "aes") {
    if (![128, 192, 256].includes(length)) throw invalidValue("options.length", length, "must be one of 128, 192, 256");
  } else if (type === "hmac") {
    if (!(length >= 8 && length <= 65536)) throw outOfRange("options.length", ">= 8 && <= 65536", length);
  } else {
    throw invalidValue("type", type, "must be one of aes, hmac");
  }
  const bytes = new Uint8Array(length >> 3);
  native.fillRandom(bytes);
  return createSecretKey(bytes);
}

/** https://nodejs.org/api/crypto.html#cryptogeneratekeytype-options-callback */
export function generateKey(type, options, callback) {
  requireFunction(callback, "callback");
  const key = generateKeySync(type, options);
  Promise.resolve().then(() => callback(null, key));
}
