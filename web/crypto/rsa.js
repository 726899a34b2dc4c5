// https://w3c.github.io/webcrypto/#rsassa-pkcs1, #rsa-pss and #rsa-oaep
import { native } from "../internal/native.js";
import { exportDer, halfKey, importDer, keyPair, requirePrivateUsage, requireType, RSA } from "./asymmetric.js";
import { dataError, notSupported, operationError, resultOf } from "./errors.js";
import { toBigInteger, toUnsignedLong } from "./idl.js";
import { checkJsonWebKey, decodeMember, encodeMember } from "./jwk.js";
import { bufferSource, defineAlgorithm, hashIdentifier, hashNumber, optional, required } from "./registry.js";
import { checkUsages } from "./symmetric.js";

const KEY_GEN_PARAMS = [
  required("modulusLength", toUnsignedLong),
  required("publicExponent", toBigInteger),
  required("hash", ...hashIdentifier),
];
const IMPORT_PARAMS = [required("hash", ...hashIdentifier)];
const PUBLIC_MEMBERS = ["n", "e"];
const PRIVATE_MEMBERS = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];
const MOST_BITS = 8192; // kMostBits in crypto_rsa.cc
const EMPTY = new Uint8Array(0);

// --- Uses of keys ---

function sign(saltLength, key, data) {
  requireType(key, "private");
  const result = native.signRsa(key.handle, hashNumber(key.algorithm.hash), data, saltLength);
  return resultOf(result, "The key is too short for such a signature.");
}

function verify(saltLength, key, signature, data) {
  requireType(key, "public");
  const result = native.verifyRsa(key.handle, hashNumber(key.algorithm.hash), signature, data, saltLength);
  return resultOf(result, "The signature could not be verified.");
}

/** https://w3c.github.io/webcrypto/#rsa-oaep-operations */
function oaep(isEncryption) {
  return ({ label = EMPTY }, key, data) => {
    requireType(key, isEncryption ? "public" : "private");
    const result = native.rsaOaep(key.handle, isEncryption, hashNumber(key.algorithm.hash), label, data);
    return resultOf(result, isEncryption ? "The data is too long for this key." : "The decryption failed.");
  };
}

// --- Keys, the same for all three ---

function algorithmOf(name, hash, handle) {
  const [modulus, exponent] = native.rsaParts(handle, false) ?? [];
  if (modulus === undefined) throw operationError("The key could not be read.");
  const bytes = new Uint8Array(modulus);
  const bits = bytes.length * 8 - Math.clz32(bytes[0]) + 24;
  return { name, modulusLength: bits, publicExponent: new Uint8Array(exponent), hash };
}

function keyOperations({ use, publicUsages, privateUsages, jwkAlgorithms }) {
  /** https://w3c.github.io/webcrypto/#rsassa-pkcs1-operations-generate-key */
  async function generateKey({ name, modulusLength, publicExponent, hash }, extractable, usages) {
    // Step 1.
    checkUsages(usages, [...publicUsages, ...privateUsages]);
    // Steps 2 and 3: failures that depend on the parameters only.
    let exponent = 0n;
    for (const byte of publicExponent.subarray(0, 64)) exponent = (exponent << 8n) | BigInt(byte);
    if (modulusLength < 512 || modulusLength > MOST_BITS) {
      throw operationError(`A modulus of ${modulusLength} bits is not supported: use 512 to ${MOST_BITS}.`);
    }
    if (exponent < 3n || exponent % 2n === 0n || exponent >= 1n << 64n) {
      throw operationError("The public exponent must be odd, from 3 to 2^64.");
    }
    requirePrivateUsage(usages, privateUsages);
    const handle = await resultOf(native.generateRsa(modulusLength, publicExponent), "The key could not be generated.");
    // Steps 4 and on.
    const algorithm = algorithmOf(name, hash, handle);
    algorithm.publicExponent = publicExponent;
    return keyPair(algorithm, handle, extractable, usages, publicUsages, privateUsages);
  }

  /** https://w3c.github.io/webcrypto/#rsassa-pkcs1-operations-import-key */
  function importKey(format, keyData, { name, hash }, extractable, usages) {
    let type;
    let handle;
    if (format === "spki" || format === "pkcs8") {
      type = format === "spki" ? "public" : "private";
      checkUsages(usages, type === "public" ? publicUsages : privateUsages);
      handle = importDer(RSA, format, keyData);
    } else if (format === "jwk") {
      type = keyData.d === undefined ? "public" : "private";
      checkUsages(usages, type === "public" ? publicUsages : privateUsages);
      checkJsonWebKey(keyData, "RSA", use, extractable, usages);
      if (keyData.alg !== undefined && keyData.alg !== jwkAlgorithms[hash.name]) {
        throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${jwkAlgorithms[hash.name]}.`);
      }
      if (keyData.oth !== undefined) throw notSupported("RSA keys of more than two primes are not supported.");
      const members = type === "public" ? PUBLIC_MEMBERS : PRIVATE_MEMBERS;
      handle = native.importRsa(...members.map((member) => decodeMember(keyData, member)));
      if (handle === undefined) throw dataError("The numbers of the JSON Web Key are not those of an RSA key.");
    } else {
      throw notSupported(`An RSA key cannot be imported from "${format}".`);
    }
    return halfKey(type, algorithmOf(name, hash, handle), handle);
  }

  /** https://w3c.github.io/webcrypto/#rsassa-pkcs1-operations-export-key */
  function exportKey(format, key) {
    if (format === "spki" || format === "pkcs8") return exportDer(key, format);
    if (format !== "jwk") throw notSupported(`An RSA key cannot be exported as "${format}".`);
    const isPrivate = key.type === "private";
    const parts = native.rsaParts(key.handle, isPrivate);
    if (parts === undefined) throw operationError("The key could not be exported.");
    const jwk = { kty: "RSA", alg: jwkAlgorithms[key.algorithm.hash.name] };
    (isPrivate ? PRIVATE_MEMBERS : PUBLIC_MEMBERS).forEach((member, i) => {
      jwk[member] = encodeMember(parts[i]);
    });
    jwk.key_ops = [...key.usages];
    jwk.ext = key.extractable;
    return jwk;
  }

  return {
    generateKey: [KEY_GEN_PARAMS, generateKey],
    importKey: [IMPORT_PARAMS, importKey],
    exportKey: [[], exportKey],
    "get public key": [[], () => publicUsages],
  };
}

const SIGNATURES = { use: "sig", publicUsages: ["verify"], privateUsages: ["sign"] };
const PSS_PARAMS = [required("saltLength", toUnsignedLong)];
const OAEP_PARAMS = [optional("label", ...bufferSource)];

defineAlgorithm("RSASSA-PKCS1-v1_5", {
  sign: [[], (algorithm, key, data) => sign(undefined, key, data)],
  verify: [[], (algorithm, key, signature, data) => verify(undefined, key, signature, data)],
  ...keyOperations({
    ...SIGNATURES,
    jwkAlgorithms: { "SHA-1": "RS1", "SHA-256": "RS256", "SHA-384": "RS384", "SHA-512": "RS512" },
  }),
});
defineAlgorithm("RSA-PSS", {
  sign: [PSS_PARAMS, ({ saltLength }, key, data) => sign(saltLength, key, data)],
  verify: [PSS_PARAMS, ({ saltLength }, key, signature, data) => verify(saltLength, key, signature, data)],
  ...keyOperations({
    ...SIGNATURES,
    jwkAlgorithms: { "SHA-1": "PS1", "SHA-256": "PS256", "SHA-384": "PS384", "SHA-512": "PS512" },
  }),
});
defineAlgorithm("RSA-OAEP", {
  encrypt: [OAEP_PARAMS, oaep(true)],
  decrypt: [OAEP_PARAMS, oaep(false)],
  ...keyOperations({
    use: "enc",
    publicUsages: ["encrypt", "wrapKey"],
    privateUsages: ["decrypt", "unwrapKey"],
    jwkAlgorithms: {
      "SHA-1": "RSA-OAEP", "SHA-256": "RSA-OAEP-256", "SHA-384": "RSA-OAEP-384", "SHA-512": "RSA-OAEP-512",
    },
  }),
});
