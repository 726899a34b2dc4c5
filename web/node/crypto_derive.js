// https://nodejs.org/api/crypto.html: key derivation from passwords and secrets.
import { mostIterations } from "../crypto/kdf.js";
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { requireHash, toBytes } from "./crypto_hash.js";
import { secretBytes } from "./crypto_keys.js";
import { codedError, outOfRange, requireFunction, requireNumber } from "./errors.js";

function tooMuch(what) {
  return codedError(RangeError, "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", `${what} would take more time or memory than a worker may use for it`);
}

/** Delivers the result of a native function: a value, a promise of it, or undefined if it failed. */
function deliver(run, callback, what) {
  requireFunction(callback, "callback");
  Promise.resolve(run()).then(
    (result) => (result === undefined || result === null ? callback(tooMuch(what)) : callback(null, Buffer.from(result))),
    callback,
  );
}

function onTheSpot(run, what) {
  const result = native.onTheSpot(run);
  if (result === undefined) throw tooMuch(what);
  return Buffer.from(result);
}

function preparePbkdf2(password, salt, iterations, keylen, digest) {
  const hash = requireHash(digest);
  const key = native.importSecret(toBytes(password, undefined, "password"));
  const saltBytes = toBytes(salt, undefined, "salt");
  requireNumber(iterations, "iterations");
  requireNumber(keylen, "keylen");
  if (!(iterations >= 1 && iterations <= mostIterations())) throw outOfRange("iterations", `>= 1 && <= ${mostIterations()}`, iterations);
  return () => native.pbkdf2(key, hash.number, saltBytes, iterations, keylen);
}

export function pbkdf2(password, salt, iterations, keylen, digest, callback) {
  deliver(preparePbkdf2(password, salt, iterations, keylen, digest), callback, "PBKDF2");
}

export function pbkdf2Sync(password, salt, iterations, keylen, digest) {
  return onTheSpot(preparePbkdf2(password, salt, iterations, keylen, digest), "PBKDF2");
}

function prepareScrypt(password, salt, keylen, options = {}) {
  const cost = options.cost ?? options.N ?? 16384;
  const blockSize = options.blockSize ?? options.r ?? 8;
  const parallelization = options.parallelization ?? options.p ?? 1;
  requireNumber(keylen, "keylen");
  const [secret, saltBytes] = [toBytes(password, undefined, "password").slice(), toBytes(salt, undefined, "salt").slice()];
  return () => native.scrypt(secret, saltBytes, cost, blockSize, parallelization, keylen);
}

export function scrypt(password, salt, keylen, options, callback = options) {
  deliver(prepareScrypt(password, salt, keylen, typeof options === "function" ? {} : options), callback, "scrypt");
}

export function scryptSync(password, salt, keylen, options = undefined) {
  return onTheSpot(prepareScrypt(password, salt, keylen, options), "scrypt");
}

function prepareHkdf(digest, ikm, salt, info, keylen) {
  const hash = requireHash(digest);
  const key = native.importSecret(secretBytes(ikm));
  return () => native.hkdf(key, hash.number, toBytes(salt), toBytes(info), keylen);
}

// HKDF returns an ArrayBuffer, as in Node.
export function hkdf(digest, ikm, salt, info, keylen, callback) {
  deliver(prepareHkdf(digest, ikm, salt, info, keylen), (error, made) => (error ? callback(error) : callback(null, made.buffer)), "HKDF");
}

export function hkdfSync(digest, ikm, salt, info, keylen) {
  return onTheSpot(prepareHkdf(digest, ikm, salt, info, keylen), "HKDF").buffer;
}
