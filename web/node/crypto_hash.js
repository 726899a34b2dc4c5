// https://nodejs.org/api/crypto.html#class-hash and #class-hmac
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, requireString } from "./errors.js";
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
};

/** Accepts "SHA-256", "sha256" and "RSA-SHA256"; undefined for an unknown hash. */
export function findHash(name) {
  const known = `${name}`.toLowerCase().replace(/^rsa-/, "");
  return HASHES[known] ?? HASHES[known.replace(/^sha-(?=\d)/, "sha").replace("/", "-")] ?? { rmd160: HASHES.ripemd160 }[known];
}

export function requireHash(name) {
  requireString(name, "algorithm");
  const hash = findHash(name);
  if (hash === undefined) throw codedError(Error, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${name}`);
  return hash;
}

export function getHashes() {
  return Object.keys(HASHES);
}

/** Converts data to hash, sign or encrypt to bytes: text or any buffer. */
export function toBytes(data, encoding = undefined, name = "data") {
  if (typeof data === "string") return Buffer.from(data, encoding === "buffer" ? undefined : encoding);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw invalidArgument(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
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

const COPY = Symbol("made by copy()");

export class Hash {
  #handle;
  #ended = false;

  constructor(algorithm, token = undefined) {
    if (token !== COPY) this.#handle = begin(requireHash(algorithm));
  }

  update(data, encoding = undefined) {
    if (this.#ended) throw finalized();
    native.updateDigest(this.#handle, toBytes(data, encoding));
    return this;
  }

  copy() {
    if (this.#ended) throw finalized();
    const other = new Hash(undefined, COPY);
    other.#handle = native.copyDigest(this.#handle);
    return other;
  }

  digest(encoding = undefined) {
    if (this.#ended) throw finalized();
    this.#ended = true;
    return output(native.endDigest(this.#handle), encoding);
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

makeLazyTransform(Hash);

export class Hmac {
  #inner;
  #outer;
  #ended = false;

  constructor(algorithm, key) {
    const hash = requireHash(algorithm);
    let secret = secretBytes(key);
    if (secret.length > hash.block) secret = new Uint8Array(native.onTheSpot(() => native.digest(hash.number, secret)));
    const pad = (byte) => Uint8Array.from({ length: hash.block }, (_, at) => (secret[at] ?? 0) ^ byte);
    this.#inner = begin(hash);
    this.#outer = begin(hash);
    native.updateDigest(this.#inner, pad(0x36));
    native.updateDigest(this.#outer, pad(0x5c));
  }

  update(data, encoding = undefined) {
    if (this.#ended) throw finalized();
    native.updateDigest(this.#inner, toBytes(data, encoding));
    return this;
  }

  digest(encoding = undefined) {
    // As in Node, a second call returns an empty result.
    if (this.#ended) return output(new ArrayBuffer(0), encoding);
    this.#ended = true;
    native.updateDigest(this.#outer, new Uint8Array(native.endDigest(this.#inner)));
    return output(native.endDigest(this.#outer), encoding);
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

export function createHash(algorithm) {
  return new Hash(algorithm);
}

export function createHmac(algorithm, key) {
  return new Hmac(algorithm, key);
}

/** https://nodejs.org/api/crypto.html#cryptohashalgorithm-data-options */
export function hash(algorithm, data, options = "hex") {
  const encoding = typeof options === "string" ? options : (options?.outputEncoding ?? "hex");
  return new Hash(algorithm).update(data).digest(encoding);
}
