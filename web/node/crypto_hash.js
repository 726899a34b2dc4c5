// https://nodejs.org/api/crypto.html#class-hash and #class-hmac
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, invalidValue, requireString, requireUint32 } from "./errors.js";
import { makeLazyTransform } from "./lazy_transform.js";
import { secretBytes } from "./crypto_keys.js";

// Numbers of HashOf in crypto.cc; `block` is the length in bytes to which HMAC pads a key.
const HASHES = {
  __proto__: null,
  md5: { number: 0, block: 64 },
  sha1: { number: 1, block: 64 },
  sha256: { number: 2, block: 64 },
  sha384: { number: 3, block: 128 },
  sha512: { number: 4, block: 128 },
  "sha3-256": { number: 5, block: 136 },
  "sha3-384": { number: 6, block: 104 },
  "sha3-512": { number: 7, block: 72 },
  sha224: { number: 8, block: 64 },
  "sha512-256": { number: 9, block: 128 },
  ripemd160: { number: 10, block: 64 },
  "sha512-224": { number: 11, block: 128 },
  "sha3-224": { number: 12, block: 144 },
  blake2b512: { number: 13, block: 128 },
  blake2s256: { number: 14, block: 64 },
  "md5-sha1": { number: 15, block: 64 },
  sm3: { number: 16, block: 64 },
  shake128: { number: 17, block: 168, bytes: 16 }, // `bytes` unless another length is asked for
  shake256: { number: 18, block: 136, bytes: 32 },
};
const OTHER_NAMES = { __proto__: null, rmd160: "ripemd160", ripemd: "ripemd160", "ssl3-md5": "md5", "ssl3-sha1": "sha1", "sha1-2": "sha1" };

// All names of Node's getHashes().
const NAMES = [
  "RSA-MD5", "RSA-RIPEMD160", "RSA-SHA1", "RSA-SHA1-2", "RSA-SHA224", "RSA-SHA256", "RSA-SHA3-224", "RSA-SHA3-256", "RSA-SHA3-384",
  "RSA-SHA3-512", "RSA-SHA384", "RSA-SHA512", "RSA-SHA512/224", "RSA-SHA512/256", "RSA-SM3", "blake2b512", "blake2s256",
  "id-rsassa-pkcs1-v1_5-with-sha3-224", "id-rsassa-pkcs1-v1_5-with-sha3-256", "id-rsassa-pkcs1-v1_5-with-sha3-384",
  "id-rsassa-pkcs1-v1_5-with-sha3-512", "md5", "md5-sha1", "md5WithRSAEncryption", "ripemd", "ripemd160", "ripemd160WithRSA", "rmd160",
  "sha1", "sha1WithRSAEncryption", "sha224", "sha224WithRSAEncryption", "sha256", "sha256WithRSAEncryption", "sha3-224", "sha3-256",
  "sha3-384", "sha3-512", "sha384", "sha384WithRSAEncryption", "sha512", "sha512-224", "sha512-224WithRSAEncryption", "sha512-256",
  "sha512-256WithRSAEncryption", "sha512WithRSAEncryption", "shake128", "shake256", "sm3", "sm3WithRSAEncryption", "ssl3-md5", "ssl3-sha1",
];

/** Accepts "SHA-256", "sha256" and "RSA-SHA256"; undefined for an unknown hash. */
export function findHash(name) {
  const text = `${name}`.toLowerCase().replace(/^rsa-|^id-rsassa-pkcs1-v1_5-with-|withrsa(encryption)?$/g, "");
  const known = OTHER_NAMES[text] ?? text;
  return HASHES[known] ?? HASHES[known.replace(/^sha-(?=\d)/, "sha").replace("/", "-")];
}

export function requireHash(name, argument = "algorithm") {
  requireString(name, argument);
  const hash = findHash(name);
  if (hash === undefined) throw codedError(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${name}`);
  return hash;
}

export function getHashes() {
  return [...NAMES];
}

/** Converts data to hash, sign or encrypt to bytes: text or any buffer. */
export function toBytes(data, encoding = undefined, name = "data") {
  if (typeof data === "string") return Buffer.from(data, encoding === "buffer" ? undefined : encoding);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw invalidArgument(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
}

/** Data in pieces: text, or a view of a buffer. As in Node, text in an unknown encoding is UTF-8. */
export function toPiece(data, encoding, name = "data") {
  if (typeof data === "string") return Buffer.from(data, Buffer.isEncoding(encoding) ? encoding : "utf8");
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw invalidArgument(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
}

// As in Node, a digest in an unknown encoding is a Buffer.
function digestOutput(buffer, encoding) {
  const bytes = Buffer.from(buffer);
  return typeof encoding === "string" && encoding !== "buffer" && Buffer.isEncoding(encoding) ? bytes.toString(encoding) : bytes;
}

export function output(buffer, encoding) {
  const bytes = Buffer.from(buffer);
  return encoding === undefined || encoding === null || encoding === "buffer" ? bytes : bytes.toString(encoding);
}

function begin(hash) {
  const handle = native.beginDigest(hash.number);
  if (handle === undefined) throw codedError(Error, "ERR_OUT_OF_MEMORY", "too many digests are under way");
  return handle;
}

function finalized() {
  return codedError(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
}

const requireLength = (length) => requireUint32(length, "options.outputLength");

const notExtendable = () => codedError(Error, "ERR_OSSL_EVP_NOT_XOF_OR_INVALID_LENGTH", "error:030000B2:digital envelope routines::not XOF or invalid length");

const COPY = Symbol("made by copy()");

export class Hash {
  #handle;
  #ended = false;
  #hash;
  #length; // bytes, if the hash does not determine it
  #piped = null; // the digest of what was piped in

  constructor(algorithm, options = undefined, token = undefined) {
    if (token === COPY) return;
    requireString(algorithm, "algorithm");
    this.#hash = findHash(algorithm);
    if (this.#hash === undefined) throw new Error("Digest method not supported");
    this.#length = this.#hash.bytes;
    this.#setLength(options?.outputLength);
    this.#handle = begin(this.#hash);
  }

  #setLength(length) {
    if (length === undefined) return;
    requireLength(length);
    if (this.#hash.bytes !== undefined) this.#length = length;
    else if (length !== native.endDigest(begin(this.#hash)).byteLength) throw notExtendable();
  }

  update(data, encoding = undefined) {
    if (this.#ended) throw finalized();
    native.updateDigest(this.#handle, toPiece(data, encoding));
    return this;
  }

  copy(options = undefined) {
    if (this.#ended) throw finalized();
    const other = new Hash(undefined, undefined, COPY);
    other.#handle = native.copyDigest(this.#handle);
    other.#hash = this.#hash;
    other.#length = this.#hash.bytes;
    other.#setLength(options?.outputLength);
    return other;
  }

  digest(encoding = undefined) {
    // An encoding may be any object with a text; it is asked before anything has changed.
    const name = encoding === undefined || encoding === null ? encoding : `${encoding}`;
    if (this.#piped !== null) return digestOutput(this.#piped, name);
    if (this.#ended) throw finalized();
    this.#ended = true;
    const result = native.endDigest(this.#handle, this.#length);
    if (result === undefined) throw notExtendable();
    return digestOutput(result, name);
  }

  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }

  _flush(callback) {
    const digest = this.digest();
    this.#piped = new Uint8Array(digest).buffer;
    this.push(digest);
    callback();
  }
}

makeLazyTransform(Hash);

export class Hmac {
  #inner;
  #outer;
  #ended = false;

  constructor(algorithm, key) {
    requireString(algorithm, "hmac");
    let secret = secretBytes(key);
    const hash = requireHash(algorithm);
    if (secret.length > hash.block) secret = new Uint8Array(native.onTheSpot(() => native.digest(hash.number, secret)));
    const pad = (byte) => Uint8Array.from({ length: hash.block }, (_, at) => (secret[at] ?? 0) ^ byte);
    this.#inner = begin(hash);
    this.#outer = begin(hash);
    native.updateDigest(this.#inner, pad(0x36));
    native.updateDigest(this.#outer, pad(0x5c));
  }

  update(data, encoding = undefined) {
    if (this.#ended) throw finalized();
    native.updateDigest(this.#inner, toPiece(data, encoding));
    return this;
  }

  digest(encoding = undefined) {
    const name = encoding === undefined || encoding === null ? encoding : `${encoding}`;
    // As in Node, a second call returns an empty result.
    if (this.#ended) return name && name !== "buffer" ? "" : Buffer.alloc(0);
    this.#ended = true;
    native.updateDigest(this.#outer, new Uint8Array(native.endDigest(this.#inner)));
    return digestOutput(native.endDigest(this.#outer), name);
  }

  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }

  _flush(callback) {
    this.push(this.digest());
    callback();
  }
}

makeLazyTransform(Hmac);

export function createHash(algorithm, options = undefined) {
  return new Hash(algorithm, options);
}

export function createHmac(algorithm, key) {
  return new Hmac(algorithm, key);
}

/** https://nodejs.org/api/crypto.html#cryptohashalgorithm-data-options */
export function hash(algorithm, input, options = "hex") {
  requireString(algorithm, "algorithm");
  const bytes = toPiece(input, "utf8", "input");
  if (typeof options !== "string" && (typeof options !== "object" || options === null || Array.isArray(options))) throw invalidArgument("options", "of type object", options);
  const { outputEncoding, outputLength } = typeof options === "string" ? { outputEncoding: options } : options;
  const encoding = outputEncoding ?? "hex";
  requireString(encoding, "outputEncoding");
  const normalized = encoding.toLowerCase() || "utf8";
  if (normalized !== "buffer" && !Buffer.isEncoding(normalized)) throw invalidValue("outputEncoding", outputEncoding);
  if (findHash(algorithm) === undefined) throw new Error(`Digest method ${algorithm} is not supported`);
  if (outputLength !== undefined) requireUint32(outputLength, "outputLength");
  return new Hash(algorithm, { outputLength }).update(bytes).digest(normalized);
}
