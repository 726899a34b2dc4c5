// https://nodejs.org/api/crypto.html: key derivation from passwords and secrets.
import { mostIterations } from "../crypto/kdf.js";
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { findHash } from "./crypto_hash.js";
import { bytesOf, isText } from "./crypto_key_options.js";
import { keyState, secretBytes } from "./crypto_keys.js";
import { codedError, invalidArgument, outOfRange, requireFunction, requireNumber, requireString } from "./errors.js";

const MOST = 2 ** 31 - 1;

function requireInteger(value, name, from, most) {
  requireNumber(value, name);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < from || value > most) throw outOfRange(name, `>= ${from} && <= ${most}`, value);
}

function requireDigest(digest) {
  const hash = findHash(digest);
  if (hash === undefined) throw codedError(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${digest}`);
  return hash;
}

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
  requireString(digest, "digest");
  const secret = bytesOf(password, "password");
  const saltBytes = bytesOf(salt, "salt");
  requireInteger(iterations, "iterations", 1, MOST);
  requireInteger(keylen, "keylen", 0, MOST);
  const { number } = requireDigest(digest);
  if (iterations > mostIterations()) throw outOfRange("iterations", `>= 1 && <= ${mostIterations()}`, iterations);
  const key = native.importSecret(secret);
  return () => native.pbkdf2(key, number, saltBytes, iterations, keylen);
}

export function pbkdf2(password, salt, iterations, keylen, digest, callback) {
  // As in Node, a call without a digest has its callback there.
  if (typeof digest === "function") requireString(undefined, "digest");
  deliver(preparePbkdf2(password, salt, iterations, keylen, digest), callback, "PBKDF2");
}

export function pbkdf2Sync(password, salt, iterations, keylen, digest) {
  return onTheSpot(preparePbkdf2(password, salt, iterations, keylen, digest), "PBKDF2");
}

// The two names of a parameter, and its value if it is not given.
const SCRYPT = [["N", "cost", 16384], ["r", "blockSize", 8], ["p", "parallelization", 1]];
const MAX_MEMORY = 32 << 20;

function readParameter(options, [short, long, fallback]) {
  const [one, other] = [options[short], options[long]];
  if (one !== undefined && other !== undefined) {
    throw codedError(TypeError, "ERR_INCOMPATIBLE_OPTION_PAIR", `Option "${short}" cannot be used in combination with option "${long}"`);
  }
  if (one !== undefined) requireInteger(one, short, 0, 0xffffffff);
  if (other !== undefined) requireInteger(other, long, 0, 0xffffffff);
  return (one ?? other ?? fallback) || fallback;
}

function prepareScrypt(password, salt, keylen, options) {
  const [secret, saltBytes] = [bytesOf(password, "password").slice(), bytesOf(salt, "salt").slice()];
  requireInteger(keylen, "keylen", 0, MOST);
  const given = options ?? {};
  const [cost, blockSize, parallelization] = SCRYPT.map((names) => readParameter(given, names));
  let { maxmem = MAX_MEMORY } = given;
  requireNumber(maxmem, "maxmem");
  if (!Number.isInteger(maxmem)) throw outOfRange("maxmem", "an integer", maxmem);
  if (maxmem < 0 || maxmem > Number.MAX_SAFE_INTEGER) throw outOfRange("maxmem", `>= 0 && <= ${Number.MAX_SAFE_INTEGER}`, maxmem);
  maxmem ||= MAX_MEMORY;
  if (cost < 2 || (cost & (cost - 1)) !== 0) throw codedError(RangeError, "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", "Invalid scrypt params");
  // As OpenSSL counts: blocks of all lanes, the table, and two more.
  const isTooLarge = blockSize * parallelization >= 2 ** 30 || cost >= 2 ** (16 * blockSize) || 128 * blockSize * (parallelization + cost + 2) > maxmem;
  if (isTooLarge) {
    const reason = "error:030000AC:digital envelope routines::memory limit exceeded";
    throw codedError(RangeError, "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", `Invalid scrypt params: ${reason}`);
  }
  return () => native.scrypt(secret, saltBytes, cost, blockSize, parallelization, keylen);
}

export function scrypt(password, salt, keylen, options, callback = undefined) {
  const [given, done] = callback === undefined ? [undefined, options] : [options, callback];
  const run = prepareScrypt(password, salt, keylen, given);
  deliver(run, done, "scrypt");
}

export function scryptSync(password, salt, keylen, options = undefined) {
  return onTheSpot(prepareScrypt(password, salt, keylen, options), "scrypt");
}

const HKDF_BUFFERS = "ArrayBuffer, TypedArray, DataView, or Buffer";

function hkdfBytes(value, name) {
  if (!isText(value)) throw invalidArgument(name, `of type string or an instance of ${HKDF_BUFFERS}`, value);
  return bytesOf(value, name);
}

function prepareHkdf(digest, ikm, salt, info, keylen) {
  requireString(digest, "digest");
  if (keyState(ikm) === undefined && !isText(ikm)) throw invalidArgument("ikm", `of type string or an instance of SecretKeyObject, ${HKDF_BUFFERS}`, ikm);
  const [saltBytes, infoBytes] = [hkdfBytes(salt, "salt"), hkdfBytes(info, "info")];
  requireInteger(keylen, "length", 0, Number.MAX_SAFE_INTEGER);
  if (infoBytes.length > 1024) throw outOfRange("info", "must not contain more than 1024 bytes", infoBytes.length);
  const { number } = requireDigest(digest);
  const size = native.onTheSpot(() => native.digest(number, new Uint8Array(0)))?.byteLength ?? 0;
  if (keylen > size * 255) throw codedError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length");
  const key = native.importSecret(secretBytes(ikm));
  return () => native.hkdf(key, number, saltBytes, infoBytes, keylen);
}

// HKDF returns an ArrayBuffer, as in Node.
export function hkdf(digest, ikm, salt, info, keylen, callback) {
  const run = prepareHkdf(digest, ikm, salt, info, keylen);
  requireFunction(callback, "callback");
  deliver(run, (error, made) => (error ? callback(error) : callback(null, made.buffer)), "HKDF");
}

export function hkdfSync(digest, ikm, salt, info, keylen) {
  return onTheSpot(prepareHkdf(digest, ikm, salt, info, keylen), "HKDF").buffer;
}
