// https://nodejs.org/api/crypto.html#class-cipheriv and #class-decipheriv
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { toPiece } from "./crypto_hash.js";
import { bytesOf } from "./crypto_key_options.js";
import { secretBytes } from "./crypto_keys.js";
import { codedError, invalidArgument, invalidValue, outOfRange, requireString } from "./errors.js";
import { makeLazyTransform } from "./lazy_transform.js";

// In the order of the numbers in crypto_cipher.cc.
const CIPHERS = [
  "aes-128-cbc", "aes-192-cbc", "aes-256-cbc", "aes-128-ctr", "aes-192-ctr", "aes-256-ctr", "aes-128-gcm", "aes-192-gcm",
  "aes-256-gcm", "aes-128-ecb", "aes-192-ecb", "aes-256-ecb", "chacha20", "des-ede3-cbc", "chacha20-poly1305",
];

const isAuthenticated = (name) => name.endsWith("-gcm") || name.endsWith("-poly1305");

export function getCiphers() {
  return [...CIPHERS];
}

function lengthOf(value, name) {
  if (value === undefined) return undefined;
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
  if (!Number.isInteger(value) || value < 0 || value > 2 ** 31 - 1) throw outOfRange(name, ">= 0 && <= 2147483647", value);
  return value;
}

function requireInt32(value, name) {
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value !== (value | 0)) throw outOfRange(name, ">= -2147483648 && <= 2147483647", value);
}

function output(buffer, encoding) {
  const bytes = Buffer.from(buffer);
  if (!encoding || encoding === "buffer") return bytes;
  if (!Buffer.isEncoding(encoding)) throw codedError(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
  return bytes.toString(encoding);
}

const invalidTagLength = (length) => codedError(TypeError, "ERR_CRYPTO_INVALID_AUTH_TAG", `Invalid authentication tag length: ${length}`);

/** Whether a tag of an authenticated cipher may have this many bytes. */
function isTagLength(name, length) {
  return name.endsWith("-gcm") ? length === 4 || length === 8 || (length >= 12 && length <= 16) : length >= 1 && length <= 16;
}

function readTagLength(options, name) {
  const length = options?.authTagLength;
  if (length === undefined || length === null) return undefined;
  if (typeof length !== "number" || !Number.isInteger(length) || length < 0 || length > 0xffffffff) throw invalidValue("options.authTagLength", length);
  if (isAuthenticated(name) && !isTagLength(name, length)) throw invalidTagLength(length);
  return length;
}

/** https://nodejs.org/api/crypto.html#cryptogetcipherinfonameornid-options */
export function getCipherInfo(nameOrNid, options = {}) {
  if (typeof nameOrNid !== "string" && typeof nameOrNid !== "number") throw invalidArgument("nameOrNid", "one of type string or number", nameOrNid);
  if (typeof nameOrNid === "number") requireInt32(nameOrNid, "nameOrNid");
  if (typeof options !== "object" || options === null) throw invalidArgument("options", "of type object", options);
  const keyLength = lengthOf(options.keyLength, "options.keyLength");
  const ivLength = lengthOf(options.ivLength, "options.ivLength");
  const text = native.cipherInfo(nameOrNid, keyLength, ivLength);
  if (text === undefined) return undefined;
  const [mode, name, ...numbers] = text.split(" ");
  const [nid, blockSize, iv, key] = numbers.map(Number);
  const info = { mode, name: name.toLowerCase(), nid };
  if (blockSize > 0) info.blockSize = blockSize;
  if (iv > 0) info.ivLength = iv;
  info.keyLength = key;
  return info;
}

class CipherBase {
  #name;
  #encrypts;
  #key;
  #iv;
  #tagLength;
  #handle = null; // created with the first bytes, because padding may change before
  #pads = true;
  #tag = null;
  #ended = false;

  constructor(name, key, iv, options, encrypts) {
    requireString(name, "cipher");
    this.#name = name.toLowerCase().replace(/^id-(aes\d+)-gcm$/, "$1-gcm");
    this.#encrypts = encrypts;
    this.#key = Uint8Array.from(secretBytes(key));
    this.#iv = iv === null ? new Uint8Array(0) : Uint8Array.from(bytesOf(iv, "iv"));
    if (!CIPHERS.includes(this.#name)) throw codedError(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
    this.#tagLength = readTagLength(options, this.#name);
    this.#open(); // throws now if a length is wrong
  }

  #open() {
    this.#handle = native.beginCipher(CIPHERS.indexOf(this.#name), this.#key, this.#iv, this.#encrypts, this.#pads);
    if (this.#handle !== undefined) return;
    if (this.#key.length !== getCipherInfo(this.#name).keyLength) throw codedError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length");
    throw codedError(TypeError, "ERR_CRYPTO_INVALID_IV", "Invalid initialization vector");
  }

  #requireOpen() {
    if (this.#ended) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state: the cipher has ended");
  }

  #requireAuthenticated(operation) {
    if (!isAuthenticated(this.#name)) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", `Invalid state for operation ${operation}`);
  }

  update(data, inputEncoding = undefined, outputEncoding = undefined) {
    this.#requireOpen();
    const result = native.updateCipher(this.#handle, toPiece(data, inputEncoding), false);
    if (result === undefined) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The data cannot be processed");
    return output(result, outputEncoding);
  }

  final(outputEncoding = undefined) {
    this.#requireOpen();
    this.#ended = true;
    if (!this.#encrypts && isAuthenticated(this.#name) && this.#tag === null) {
      throw codedError(Error, "ERR_CRYPTO_INVALID_AUTH_TAG", "Unsupported state or unable to authenticate data");
    }
    const result = native.endCipher(this.#handle);
    if (result === undefined) {
      const reason = isAuthenticated(this.#name) ? "Unsupported state or unable to authenticate data" : "bad decrypt";
      throw codedError(Error, "ERR_OSSL_BAD_DECRYPT", reason);
    }
    if (this.#encrypts && isAuthenticated(this.#name)) this.#tag = Buffer.from(native.cipherTag(this.#handle, this.#tagLength ?? 16));
    return output(result, outputEncoding);
  }

  setAAD(data) {
    this.#requireOpen();
    const bytes = bytesOf(data, "aadbuf");
    this.#requireAuthenticated("setAAD");
    native.updateCipher(this.#handle, bytes, true);
    return this;
  }

  setAutoPadding(pads = true) {
    this.#requireOpen();
    this.#pads = !!pads;
    this.#open();
    return this;
  }

  getAuthTag() {
    if (this.#tag === null) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation getAuthTag");
    return this.#tag;
  }

  setAuthTag(tag, encoding = undefined) {
    this.#requireOpen();
    const bytes = bytesOf(tag, "buffer", encoding);
    this.#requireAuthenticated("setAuthTag");
    // Only GCM takes a shorter tag that was not announced.
    const isGcm = this.#name.endsWith("-gcm");
    const fits = this.#tagLength === undefined && isGcm ? isTagLength(this.#name, bytes.length) : bytes.length === (this.#tagLength ?? 16);
    if (!fits) throw invalidTagLength(bytes.length);
    if (native.cipherTag(this.#handle, bytes) !== true) throw codedError(TypeError, "ERR_CRYPTO_INVALID_AUTH_TAG", "Invalid authentication tag");
    this.#tag = bytes;
    return this;
  }

  _transform(chunk, encoding, callback) {
    callback(null, this.update(chunk, encoding));
  }

  _flush(callback) {
    try {
      this.push(this.final());
      callback();
    } catch (error) {
      callback(error);
    }
  }
}

makeLazyTransform(CipherBase);

export class Cipheriv extends CipherBase {
  constructor(cipher, key, iv, options = undefined) {
    super(cipher, key, iv, options, true);
  }
}

export class Decipheriv extends CipherBase {
  constructor(cipher, key, iv, options = undefined) {
    super(cipher, key, iv, options, false);
  }
}

export function createCipheriv(cipher, key, iv, options = undefined) {
  return new Cipheriv(cipher, key, iv, options);
}

export function createDecipheriv(cipher, key, iv, options = undefined) {
  return new Decipheriv(cipher, key, iv, options);
}
