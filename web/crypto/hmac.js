// https://w3c.github.io/webcrypto/#hmac
import { native } from "../internal/native.js";
import { copyOf, toUnsignedLong } from "./idl.js";
import { dataError, notSupported, operationError, resultOf } from "./errors.js";
import { checkJsonWebKey } from "./jwk.js";
import { secretKey } from "./key.js";
import { defineAlgorithm, hashBlockBits, hashIdentifier, hashNumber, optional, required } from "./registry.js";
import { checkUsages, generateSecret, importSecret, secretOfJwk, secretToJwk } from "./symmetric.js";

const PARAMS = [required("hash", ...hashIdentifier), optional("length", toUnsignedLong)];
const USAGES = ["sign", "verify"];
const JWK_ALGORITHMS = { "SHA-1": "HS1", "SHA-256": "HS256", "SHA-384": "HS384", "SHA-512": "HS512" };

/** https://w3c.github.io/webcrypto/#hmac-operations-sign */
function sign(algorithm, key, data) {
  return resultOf(native.signHmac(key.handle, hashNumber(key.algorithm.hash), data), "The HMAC could not be computed.");
}

/** https://w3c.github.io/webcrypto/#hmac-operations-verify */
function verify(algorithm, key, signature, data) {
  const result = native.verifyHmac(key.handle, hashNumber(key.algorithm.hash), signature, data);
  return resultOf(result, "The HMAC could not be computed.");
}

/** https://w3c.github.io/webcrypto/#hmac-operations-generate-key */
function generateKey({ name, hash, length }, extractable, usages) {
  // Step 1.
  checkUsages(usages, USAGES);
  // Step 2.
  const bits = length ?? hashBlockBits(hash);
  if (bits === 0) throw operationError("An HMAC key may not be empty.");
  // Steps 3 and on.
  return secretKey({ name, hash, length: bits }, generateSecret(bits));
}

/** https://w3c.github.io/webcrypto/#hmac-operations-import-key */
function importKey(format, keyData, { name, hash, length }, extractable, usages) {
  // Step 2.
  checkUsages(usages, USAGES);
  // Step 4.
  let data;
  if (format === "raw") {
    data = copyOf(keyData);
  } else if (format === "jwk") {
    checkJsonWebKey(keyData, "oct", "sig", extractable, usages);
    data = secretOfJwk(keyData);
    if (keyData.alg !== undefined && keyData.alg !== JWK_ALGORITHMS[hash.name]) {
      throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${JWK_ALGORITHMS[hash.name]}.`);
    }
  } else {
    throw notSupported(`An HMAC key cannot be imported from "${format}".`);
  }
  // Steps 5 and 6.
  const bits = data.length * 8;
  if (bits === 0) throw dataError("An HMAC key may not be empty.");
  // Step 7.
  if (length !== undefined && (length > bits || length <= bits - 8)) {
    throw dataError(`The key has ${bits} bits and not ${length}.`);
  }
  const wanted = length ?? bits;
  if (wanted % 8 !== 0) data[data.length - 1] &= 0xff << (8 - (wanted % 8));
  return secretKey({ name, hash, length: wanted }, importSecret(data));
}

/** https://w3c.github.io/webcrypto/#hmac-operations-export-key */
function exportKey(format, key) {
  if (format === "raw") return native.exportSecret(key.handle);
  if (format === "jwk") return secretToJwk(key, JWK_ALGORITHMS[key.algorithm.hash.name]);
  throw notSupported(`An HMAC key cannot be exported as "${format}".`);
}

/** https://w3c.github.io/webcrypto/#hmac-operations-get-key-length */
function getKeyLength({ hash, length }) {
  if (length === undefined) return hashBlockBits(hash);
  if (length === 0) throw new TypeError("An HMAC key may not be empty.");
  return length;
}

defineAlgorithm("HMAC", {
  sign: [[], sign],
  verify: [[], verify],
  generateKey: [PARAMS, generateKey],
  importKey: [PARAMS, importKey],
  exportKey: [[], exportKey],
  "get key length": [PARAMS, getKeyLength],
});
