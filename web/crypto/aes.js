// https://w3c.github.io/webcrypto/#aes-ctr, #aes-cbc, #aes-gcm and #aes-kw
import { native } from "../internal/native.js";
import { copyOf, toOctet, toUnsignedShort } from "./idl.js";
import { dataError, notSupported, operationError, resultOf } from "./errors.js";
import { checkJsonWebKey } from "./jwk.js";
import { secretKey } from "./key.js";
import { bufferSource, defineAlgorithm, optional, required } from "./registry.js";
import { checkUsages, generateSecret, importSecret, secretOfJwk, secretToJwk } from "./symmetric.js";

const LENGTHS = [128, 192, 256];
const TAG_LENGTHS = [32, 64, 96, 104, 112, 120, 128];
const CIPHER_USAGES = ["encrypt", "decrypt", "wrapKey", "unwrapKey"];
const WRAP_USAGES = ["wrapKey", "unwrapKey"];
const EMPTY = new Uint8Array(0);

// --- The four modes ---

/** https://w3c.github.io/webcrypto/#aes-gcm-operations */
function gcm(isEncryption) {
  return ({ iv, additionalData = EMPTY, tagLength = 128 }, key, data) => {
    if (!TAG_LENGTHS.includes(tagLength)) throw operationError(`Invalid AES-GCM tag length ${tagLength}.`);
    if (iv.length < 1 || iv.length > 128) throw operationError(iv.length < 1 ? "AES-GCM IV must not be empty." : "AES-GCM IV has at most 128 bytes.");
    if (!isEncryption && data.byteLength < tagLength / 8) throw operationError(`Ciphertext length of ${data.byteLength * 8} bits must be greater than or equal to the size of the AES-GCM tag length of ${tagLength} bits.`);
    const result = native.aesGcm(key.handle, isEncryption, iv, data, additionalData, tagLength / 8);
    return resultOf(result, isEncryption ? "The encryption failed." : "The decryption failed.");
  };
}

/** https://w3c.github.io/webcrypto/#aes-cbc-operations */
function cbc(isEncryption) {
  return ({ iv }, key, data) => {
    if (iv.length !== 16) throw operationError(`AES-CBC IV must be 16 bytes long (provided ${iv.length}).`);
    const result = native.aesCbc(key.handle, isEncryption, iv, data);
    return resultOf(result, isEncryption ? "The encryption failed." : "The decryption failed.");
  };
}

/** https://w3c.github.io/webcrypto/#aes-ctr-operations */
function ctr({ counter, length }, key, data) {
  if (counter.length !== 16) throw operationError("The counter must have 16 bytes.");
  if (length < 1 || length > 128) throw operationError("From 1 to 128 bits of the counter can count.");
  return resultOf(native.aesCtr(key.handle, counter, length, data), "The data is longer than the counter allows.");
}

/** https://w3c.github.io/webcrypto/#aes-kw-operations */
function wrap(isWrapping) {
  return (algorithm, key, data) => {
    const message = isWrapping
      ? "AES-KW needs two or more whole blocks of 8 bytes."
      : "The key was not wrapped with this wrapping key.";
    return resultOf(native.aesWrap(key.handle, isWrapping, data), message);
  };
}

// --- Keys, the same for all modes ---

function checkLength(length) {
  if (!LENGTHS.includes(length)) throw operationError(`Generated AES key length must be 128, 192, or 256 bits but requested ${length}.`);
}

function keyOperations(letters, allowed) {
  const jwkAlgorithm = (length) => `A${length}${letters}`;

  function generateKey({ name, length }, extractable, usages) {
    // Steps 1 and 2.
    checkUsages(usages, allowed);
    checkLength(length);
    // Steps 3 and on.
    return secretKey({ name, length }, generateSecret(length));
  }

  function importKey(format, keyData, { name }, extractable, usages) {
    // Step 1.
    checkUsages(usages, allowed);
    // Step 2.
    let data;
    if (format === "raw") {
      data = copyOf(keyData);
    } else if (format === "jwk") {
      checkJsonWebKey(keyData, "oct", "enc", extractable, usages);
      data = secretOfJwk(keyData);
    } else {
      throw notSupported(`An AES key cannot be imported from "${format}".`);
    }
    const length = data.length * 8;
    if (!LENGTHS.includes(length)) throw dataError(`Imported AES key length must be 128, 192, or 256 bits but provided ${length}.`);
    if (format === "jwk" && keyData.alg !== undefined && keyData.alg !== jwkAlgorithm(length)) {
      throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${jwkAlgorithm(length)}.`);
    }
    return secretKey({ name, length }, importSecret(data));
  }

  function exportKey(format, key) {
    if (format === "raw") return native.exportSecret(key.handle);
    if (format === "jwk") return secretToJwk(key, jwkAlgorithm(key.algorithm.length));
    throw notSupported(`An AES key cannot be exported as "${format}".`);
  }

  function getKeyLength({ length }) {
    checkLength(length);
    return length;
  }

  const params = [required("length", toUnsignedShort)];
  return {
    generateKey: [params, generateKey],
    importKey: [[], importKey],
    exportKey: [[], exportKey],
    "get key length": [params, getKeyLength],
  };
}

const GCM_PARAMS = [optional("additionalData", ...bufferSource), required("iv", ...bufferSource), optional("tagLength", toOctet)];
const CBC_PARAMS = [required("iv", ...bufferSource)];
const CTR_PARAMS = [required("counter", ...bufferSource), required("length", toOctet)];

defineAlgorithm("AES-GCM", {
  encrypt: [GCM_PARAMS, gcm(true)],
  decrypt: [GCM_PARAMS, gcm(false)],
  ...keyOperations("GCM", CIPHER_USAGES),
});
defineAlgorithm("AES-CBC", {
  encrypt: [CBC_PARAMS, cbc(true)],
  decrypt: [CBC_PARAMS, cbc(false)],
  ...keyOperations("CBC", CIPHER_USAGES),
});
defineAlgorithm("AES-CTR", {
  encrypt: [CTR_PARAMS, ctr],
  decrypt: [CTR_PARAMS, ctr],
  ...keyOperations("CTR", CIPHER_USAGES),
});
defineAlgorithm("AES-KW", {
  wrapKey: [[], wrap(true)],
  unwrapKey: [[], wrap(false)],
  ...keyOperations("KW", WRAP_USAGES),
});
