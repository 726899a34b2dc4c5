// https://nodejs.org/api/crypto.html
import { crypto as webcrypto } from "../crypto/crypto.js";
import { queueMicrotask } from "../timers.js";
import { openssl } from "./constants.js";
import { createCipheriv, createDecipheriv, getCipherInfo, getCiphers, Cipheriv as MadeCipheriv, Decipheriv as MadeDecipheriv } from "./crypto_cipher.js";
import { hkdf, hkdfSync, pbkdf2, pbkdf2Sync, scrypt, scryptSync } from "./crypto_derive.js";
import { generateKey, generateKeyPair, generateKeyPairSync, generateKeySync } from "./crypto_generate.js";
import { createDiffieHellman, createDiffieHellmanGroup, DiffieHellman as MadeDiffieHellman, diffieHellman, DiffieHellmanGroup as MadeDiffieHellmanGroup, getDiffieHellman } from "./crypto_dh.js";
import { createECDH, ECDH as MadeECDH, getCurves } from "./crypto_ecdh.js";
import { createHash, createHmac, getHashes, Hash as MadeHash, hash, Hmac as MadeHmac } from "./crypto_hash.js";
import { createPrivateKey, createPublicKey, createSecretKey, KeyObject, PrivateKeyObject, PublicKeyObject, SecretKeyObject } from "./crypto_keys.js";
import { checkPrime, checkPrimeSync, generatePrime, generatePrimeSync } from "./crypto_primes.js";
import { randomBytes, randomFill, randomFillSync, randomInt, randomUUID, timingSafeEqual } from "./crypto_random.js";
import { privateDecrypt, privateEncrypt, publicDecrypt, publicEncrypt } from "./crypto_rsa.js";
import { Certificate } from "./crypto_spkac.js";
import { createSign, createVerify, Sign, sign, Verify, verify } from "./crypto_sign.js";
import { X509Certificate } from "./crypto_x509.js";
import { codedError } from "./errors.js";
import { callable } from "./legacy_class.js";

export const { subtle } = webcrypto;
export const getRandomValues = (array) => webcrypto.getRandomValues(array);
export const getFips = () => 0;
export const secureHeapUsed = () => undefined;

const notImplemented = (name) => codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The crypto.${name} method is not implemented`);

/** A function that Cloudflare's runtime has and does not implement. The error goes to the callback, if there is one. */
function missing(name, callbackIndex = -1) {
  return (...args) => {
    const callback = args[callbackIndex];
    if (typeof callback !== "function") throw notImplemented(name);
    queueMicrotask(() => callback(notImplemented(name)));
  };
}

export const setEngine = missing("setEngine");
export const setFips = missing("setFips");
export const encapsulate = missing("encapsulate", 1);
export const decapsulate = missing("decapsulate", 2);
const Cipheriv = callable(MadeCipheriv);
const Decipheriv = callable(MadeDecipheriv);
const DiffieHellman = callable(MadeDiffieHellman);
const DiffieHellmanGroup = callable(MadeDiffieHellmanGroup);
const ECDH = callable(MadeECDH);
const Hash = callable(MadeHash);
const Hmac = callable(MadeHmac);

export const argon2 = missing("argon2", 2);
export const argon2Sync = missing("argon2Sync");
// https://nodejs.org/api/crypto.html#crypto-constants
export const constants = { ...openssl };

export {
  checkPrime, checkPrimeSync, createDiffieHellman, createDiffieHellmanGroup, createECDH, DiffieHellman, diffieHellman, DiffieHellmanGroup, ECDH,
  generatePrime, generatePrimeSync, getCipherInfo, getCurves, getDiffieHellman, privateDecrypt, privateEncrypt, publicDecrypt, publicEncrypt,
  Cipheriv, createCipheriv, createDecipheriv, createHash, createHmac, createPrivateKey, createPublicKey, createSecretKey, createSign,
  createVerify, Decipheriv, generateKey, generateKeyPair, generateKeyPairSync, generateKeySync, getCiphers, getHashes, Hash, hash, hkdf,
  hkdfSync, Hmac, KeyObject, pbkdf2, pbkdf2Sync, randomBytes, randomBytes as prng, randomBytes as pseudoRandomBytes, randomBytes as rng, randomFill, randomFillSync, randomInt, randomUUID, scrypt, scryptSync, Sign, sign, timingSafeEqual,
  Certificate, PrivateKeyObject, PublicKeyObject, SecretKeyObject, Verify, verify, webcrypto, X509Certificate,
};
