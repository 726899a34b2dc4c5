// https://nodejs.org/api/crypto.html#class-diffiehellman and #class-diffiehellmangroup
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { keyBytes } from "./crypto_ecdh.js";
import { requireResult } from "./crypto_faults.js";
import { output } from "./crypto_hash.js";
import { kindOf, privateState, publicState } from "./crypto_keys.js";
import { generatePrimeSync } from "./crypto_primes.js";
import { answer } from "./crypto_sign.js";
import { codedError, invalidArgument, invalidValue, outOfRange, requireFunction, requireString } from "./errors.js";

const TWO = Uint8Array.of(2);

// Without leading zeros.
const stripped = (bytes) => bytes.subarray(Math.max(0, bytes.findIndex((byte) => byte !== 0)));

const isSmall = (bytes) => bytes.every((byte, at) => byte === 0 || (at === bytes.length - 1 && byte <= 1));

/** Compares two numbers. */
function compare(one, other) {
  return Buffer.compare(Buffer.concat([Buffer.alloc(Math.max(0, other.length - one.length)), one]), Buffer.concat([Buffer.alloc(Math.max(0, one.length - other.length)), other]));
}

class Agreement {
  #prime;
  #generator;
  #secret = null;
  #public = null;

  constructor(prime, generator) {
    this.#prime = prime;
    this.#generator = generator;
  }

  get verifyError() {
    return 0;
  }

  #power(base, exponent) {
    const result = native.dhPower(base, exponent, this.#prime);
    if (result === undefined) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The prime or the key cannot be used: numbers have at most 8,192 bits");
    return new Uint8Array(result);
  }

  generateKeys(encoding = undefined) {
    if (this.#secret === null) {
      const secret = new Uint8Array(this.#prime.length);
      do native.fillRandom(secret);
      while (isSmall(secret) || compare(secret, this.#prime) >= 0);
      this.#secret = secret;
    }
    this.#public = this.#power(this.#generator, this.#secret);
    return this.getPublicKey(encoding);
  }

  computeSecret(otherPublicKey, inputEncoding = undefined, outputEncoding = undefined) {
    const other = keyBytes(otherPublicKey, inputEncoding, "otherPublicKey");
    if (this.#secret === null) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "No private key - did you forget to generate one?");
    if (isSmall(other)) throw codedError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Supplied key is too small");
    if (compare(other, this.#prime) >= 0) throw codedError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Supplied key is too large");
    return output(this.#power(other, this.#secret).buffer, outputEncoding);
  }

  getPrime(encoding = undefined) {
    return output(this.#prime.slice().buffer, encoding);
  }

  getGenerator(encoding = undefined) {
    return output(this.#generator.slice().buffer, encoding);
  }

  getPublicKey(encoding = undefined) {
    if (this.#public === null) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "No public key - did you forget to generate one?");
    return output(stripped(this.#public).slice().buffer, encoding);
  }

  getPrivateKey(encoding = undefined) {
    if (this.#secret === null) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "No private key - did you forget to generate one?");
    return output(stripped(this.#secret).slice().buffer, encoding);
  }

  static setSecret(agreement, secret) {
    agreement.#secret = secret;
  }

  static setPublic(agreement, key) {
    agreement.#public = key;
  }
}

const { setSecret, setPublic } = Agreement;
delete Agreement.setSecret;
delete Agreement.setPublic;

// As in Node: a number makes a prime of that many bits, everything else is the prime.
function primeOf(size, encoding) {
  if (typeof size === "number") {
    if (!Number.isInteger(size)) throw outOfRange("sizeOrKey", "an integer", size);
    if (size < 2 || size > 10_000) throw codedError(Error, "ERR_OSSL_BN_BITS_TOO_SMALL", "bits too small");
    return new Uint8Array(generatePrimeSync(size, { safe: true }));
  }
  return Uint8Array.from(keyBytes(size, encoding, "sizeOrKey"));
}

function generatorOf(generator, encoding) {
  if (generator === undefined || generator === null) return TWO;
  if (typeof generator === "number") {
    if (!Number.isInteger(generator) || generator < 2 || generator > 2 ** 31 - 1) throw codedError(Error, "ERR_OSSL_DH_BAD_GENERATOR", "bad generator");
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(generator);
    return stripped(bytes);
  }
  const bytes = Uint8Array.from(keyBytes(generator, encoding, "generator"));
  if (isSmall(bytes)) throw codedError(Error, "ERR_OSSL_DH_BAD_GENERATOR", "bad generator");
  return bytes;
}

export class DiffieHellman extends Agreement {
  constructor(sizeOrKey, keyEncoding = undefined, generator = undefined, genEncoding = undefined) {
    if (typeof sizeOrKey !== "number" && typeof sizeOrKey !== "string" && !ArrayBuffer.isView(sizeOrKey) && !(sizeOrKey instanceof ArrayBuffer)) {
      throw invalidArgument("sizeOrKey", "one of type number, string, ArrayBuffer, Buffer, TypedArray, or DataView", sizeOrKey);
    }
    const hasEncoding = keyEncoding === undefined || keyEncoding === null || keyEncoding === "buffer" || Buffer.isEncoding(keyEncoding);
    const [encoding, given, givenEncoding] = hasEncoding ? [keyEncoding, generator, genEncoding] : [undefined, keyEncoding, generator];
    super(primeOf(sizeOrKey, encoding ?? undefined), generatorOf(given, givenEncoding ?? undefined));
  }

  setPrivateKey(key, encoding = undefined) {
    setSecret(this, Uint8Array.from(keyBytes(key, encoding, "key")));
    return this;
  }

  setPublicKey(key, encoding = undefined) {
    setPublic(this, Uint8Array.from(keyBytes(key, encoding, "key")));
    return this;
  }
}

export class DiffieHellmanGroup extends Agreement {
  constructor(name) {
    requireString(name, "name");
    const prime = native.dhGroup(name.toLowerCase());
    if (prime === undefined) throw codedError(Error, "ERR_CRYPTO_UNKNOWN_DH_GROUP", "Unknown DH group");
    super(new Uint8Array(prime), TWO);
  }
}

const KINDS = ["dh", "ec", "x448", "x25519"];

/** https://nodejs.org/api/crypto.html#cryptodiffiehellmanoptions-callback */
export function diffieHellman(options, callback = undefined) {
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw invalidArgument("options", "of type object", options);
  if (callback !== undefined) requireFunction(callback, "callback");
  const { privateKey, publicKey } = options;
  if (!privateKey) throw invalidValue("options.privateKey", privateKey);
  if (!publicKey) throw invalidValue("options.publicKey", publicKey);
  const ours = privateState(privateKey, "options.privateKey");
  const theirs = publicState(publicKey, "options.publicKey");
  const [kind, other] = [kindOf(ours), kindOf(theirs)];
  if (kind !== other || !KINDS.includes(kind)) {
    throw codedError(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY", `Incompatible key types for Diffie-Hellman: ${kind} and ${other}`);
  }
  const run = () => native.deriveShared(ours.handle, theirs.handle);
  return answer(run, callback, (shared) => Buffer.from(requireResult(shared, "The keys cannot agree on a secret")));
}

export const createDiffieHellman = (...args) => new DiffieHellman(...args);
export const createDiffieHellmanGroup = (name) => new DiffieHellmanGroup(name);
export const getDiffieHellman = createDiffieHellmanGroup;
