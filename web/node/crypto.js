// https://nodejs.org/api/crypto.html
import { crypto as webcrypto } from "../crypto/crypto.js";
import { createCipheriv, createDecipheriv, getCipherInfo, getCiphers, Cipheriv, Decipheriv } from "./crypto_cipher.js";
import { hkdf, hkdfSync, pbkdf2, pbkdf2Sync, scrypt, scryptSync } from "./crypto_derive.js";
import { generateKey, generateKeyPair, generateKeyPairSync, generateKeySync } from "./crypto_generate.js";
import { createDiffieHellman, createDiffieHellmanGroup, DiffieHellman, diffieHellman, DiffieHellmanGroup, getDiffieHellman } from "./crypto_dh.js";
import { createECDH, ECDH, getCurves } from "./crypto_ecdh.js";
import { createHash, createHmac, getHashes, Hash, hash, Hmac } from "./crypto_hash.js";
import { createPrivateKey, createPublicKey, createSecretKey, KeyObject, PrivateKeyObject, PublicKeyObject, SecretKeyObject } from "./crypto_keys.js";
import { checkPrime, checkPrimeSync, generatePrime, generatePrimeSync } from "./crypto_primes.js";
import { randomBytes, randomFill, randomFillSync, randomInt, randomUUID, timingSafeEqual } from "./crypto_random.js";
import { privateDecrypt, privateEncrypt, publicDecrypt, publicEncrypt } from "./crypto_rsa.js";
import { Certificate } from "./crypto_spkac.js";
import { createSign, createVerify, Sign, sign, Verify, verify } from "./crypto_sign.js";
import { X509Certificate } from "./crypto_x509.js";
import { codedError } from "./errors.js";

export const { subtle } = webcrypto;
export const getRandomValues = (array) => webcrypto.getRandomValues(array);
export const getFips = () => 0;
export const secureHeapUsed = () => undefined;

export function setEngine() {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The crypto.setEngine method is not implemented");
}

export function setFips() {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The crypto.setFips method is not implemented");
}
export const constants = {
  RSA_PKCS1_PADDING: 1,
  RSA_NO_PADDING: 3,
  RSA_PKCS1_OAEP_PADDING: 4,
  RSA_PKCS1_PSS_PADDING: 6,
  RSA_PSS_SALTLEN_DIGEST: -1,
  RSA_PSS_SALTLEN_MAX_SIGN: -2,
  RSA_PSS_SALTLEN_AUTO: -2,
};

export {
  checkPrime, checkPrimeSync, createDiffieHellman, createDiffieHellmanGroup, createECDH, DiffieHellman, diffieHellman, DiffieHellmanGroup, ECDH,
  generatePrime, generatePrimeSync, getCipherInfo, getCurves, getDiffieHellman, privateDecrypt, privateEncrypt, publicDecrypt, publicEncrypt,
  Cipheriv, createCipheriv, createDecipheriv, createHash, createHmac, createPrivateKey, createPublicKey, createSecretKey, createSign,
  createVerify, Decipheriv, generateKey, generateKeyPair, generateKeyPairSync, generateKeySync, getCiphers, getHashes, Hash, hash, hkdf,
  hkdfSync, Hmac, KeyObject, pbkdf2, pbkdf2Sync, randomBytes, randomBytes as pseudoRandomBytes, randomFill, randomFillSync, randomInt, randomUUID, scrypt, scryptSync, Sign, sign, timingSafeEqual,
  Certificate, PrivateKeyObject, PublicKeyObject, SecretKeyObject, Verify, verify, webcrypto, X509Certificate,
};
