// https://wicg.github.io/webcrypto-modern-algos/#chacha20-poly1305 and #aes-ocb
import { native } from "../internal/native.js";
import { copyOf, toOctet, toUnsignedShort } from "./idl.js";
import { dataError, notSupported, operationError } from "./errors.js";
import { checkJsonWebKey } from "./jwk.js";
import { secretKey } from "./key.js";
import { bufferSource, defineAlgorithm, optional, required } from "./registry.js";
import { checkUsages, generateSecret, importSecret, secretOfJwk, secretToJwk } from "./symmetric.js";

const USAGES = ["encrypt", "decrypt", "wrapKey", "unwrapKey"];
const PARAMS = [optional("additionalData", ...bufferSource), required("iv", ...bufferSource), optional("tagLength", toOctet)];
const EMPTY = new Uint8Array(0);

// Numbers of crypto_cipher.cc.
const CHACHA = 14;
const OCB = { 128: 15, 192: 16, 256: 17 };

function concat(parts, length) {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(new Uint8Array(part), at);
    at += part.byteLength;
  }
  return whole.buffer;
}

function begin(number, key, iv, encrypts, additionalData, tagBytes) {
  const handle = native.beginCipher(number, new Uint8Array(native.exportSecret(key.handle)), iv, encrypts, true, tagBytes);
  if (handle === undefined) throw operationError("The cipher cannot be set up with this iv.");
  if (additionalData.length > 0) native.updateCipher(handle, additionalData, true);
  return handle;
}

/** Both ciphers append the tag to the ciphertext. `check` rejects invalid parameters, `numberOf` returns the cipher for a key. */
function cipher(encrypts, check, numberOf) {
  return ({ iv, additionalData = EMPTY, tagLength = 128 }, key, data) => {
    check(iv, tagLength);
    const tagBytes = tagLength / 8;
    if (!encrypts && data.byteLength < tagBytes) throw operationError("The data is shorter than its tag.");
    const handle = begin(numberOf(key), key, iv, encrypts, additionalData, tagBytes);
    if (encrypts) {
      const parts = [native.updateCipher(handle, data, false), native.endCipher(handle), native.cipherTag(handle, tagBytes)];
      if (parts.includes(undefined)) throw operationError("The encryption failed.");
      return concat(parts, data.byteLength + tagBytes);
    }
    const size = data.byteLength - tagBytes;
    native.cipherTag(handle, data.subarray(size));
    const parts = [native.updateCipher(handle, data.subarray(0, size), false), native.endCipher(handle)];
    if (parts.includes(undefined)) throw operationError("The decryption failed.");
    return concat(parts, size);
  };
}

function checkChaCha(iv, tagLength) {
  if (iv.length !== 12) throw operationError("The iv must have 12 bytes.");
  if (tagLength !== 128) throw operationError(`A tag cannot have ${tagLength} bits.`);
}

function checkOcb(iv, tagLength) {
  if (iv.length < 1 || iv.length > 15) throw operationError("The iv must have from 1 to 15 bytes.");
  if (![64, 96, 128].includes(tagLength)) throw operationError(`A tag cannot have ${tagLength} bits.`);
}

/** `lengths`: valid key lengths in bits; `jwkAlgorithm(bits)`: its `alg` in a JSON Web Key; `describe(name, bits)`: its algorithm. */
function keyOperations({ name, lengths, jwkAlgorithm, describe, generationParams, lengthOf }) {
  function generateKey(algorithm, extractable, usages) {
    checkUsages(usages, USAGES);
    const bits = lengthOf(algorithm);
    if (!lengths.includes(bits)) throw operationError(`A key of ${name} cannot have ${bits} bits.`);
    return secretKey(describe(bits), generateSecret(bits));
  }

  function importKey(format, keyData, algorithm, extractable, usages) {
    checkUsages(usages, USAGES);
    let data;
    if (format === "raw-secret") data = copyOf(keyData);
    else if (format === "jwk") {
      checkJsonWebKey(keyData, "oct", "enc", extractable, usages);
      data = secretOfJwk(keyData);
    } else throw notSupported(`A key of ${name} cannot be imported from "${format}".`);
    const bits = data.length * 8;
    if (!lengths.includes(bits)) throw dataError(`A key of ${name} cannot have ${bits} bits.`);
    if (format === "jwk" && keyData.alg !== undefined && keyData.alg !== jwkAlgorithm(bits)) {
      throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${jwkAlgorithm(bits)}.`);
    }
    return secretKey(describe(bits), importSecret(data));
  }

  function exportKey(format, key) {
    if (format === "raw-secret") return native.exportSecret(key.handle);
    if (format === "jwk") return secretToJwk(key, jwkAlgorithm(native.exportSecret(key.handle).byteLength * 8));
    throw notSupported(`A key of ${name} cannot be exported as "${format}".`);
  }

  function getKeyLength(algorithm) {
    const bits = lengthOf(algorithm);
    if (!lengths.includes(bits)) throw operationError(`A key of ${name} cannot have ${bits} bits.`);
    return bits;
  }

  return {
    generateKey: [generationParams, generateKey],
    importKey: [[], importKey],
    exportKey: [[], exportKey],
    "get key length": [generationParams, getKeyLength],
  };
}

const chacha = "ChaCha20-Poly1305";
defineAlgorithm(chacha, {
  encrypt: [PARAMS, cipher(true, checkChaCha, () => CHACHA)],
  decrypt: [PARAMS, cipher(false, checkChaCha, () => CHACHA)],
  ...keyOperations({
    name: chacha,
    lengths: [256],
    jwkAlgorithm: () => "C20P",
    describe: () => ({ name: chacha }),
    generationParams: [],
    lengthOf: () => 256,
  }),
});
const ocb = "AES-OCB";
const numberOf = (key) => OCB[key.algorithm.length];
defineAlgorithm(ocb, {
  encrypt: [PARAMS, cipher(true, checkOcb, numberOf)],
  decrypt: [PARAMS, cipher(false, checkOcb, numberOf)],
  ...keyOperations({
    name: ocb,
    lengths: [128, 192, 256],
    jwkAlgorithm: (bits) => `A${bits}OCB`,
    describe: (length) => ({ name: ocb, length }),
    generationParams: [required("length", toUnsignedShort)],
    lengthOf: ({ length }) => length,
  }),
});
