// https://nodejs.org/api/crypto.html#class-ecdh, on any curve that OpenSSL knows.
import { native } from "../internal/native.js";
import { output, toBytes } from "./crypto_hash.js";
import { codedError, invalidArgument, requireString } from "./errors.js";

const FORMS = { compressed: 2, uncompressed: 4, hybrid: 6 };

let names = null;

export function getCurves() {
  names ??= native.curveNames().split(" ").sort();
  return [...names];
}

function requireCurve(name) {
  requireString(name, "curve");
  if (!getCurves().includes(name)) throw codedError(TypeError, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
  return name;
}

function formOf(format) {
  if (!format) return FORMS.uncompressed;
  if (!Object.hasOwn(FORMS, format)) throw codedError(TypeError, "ERR_CRYPTO_ECDH_INVALID_FORMAT", `Invalid ECDH format: ${format}`);
  return FORMS[format];
}

const failed = (message) => codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", message);

export class ECDH {
  #curve;
  #secret = null;
  #point = null; // uncompressed

  constructor(curve) {
    this.#curve = requireCurve(curve);
  }

  static convertKey(key, curve, inputEncoding = undefined, outputEncoding = undefined, format = undefined) {
    requireString(curve, "curve");
    const bytes = keyBytes(key, inputEncoding, "key");
    const point = native.ecdhConvert(requireCurve(curve), bytes, formOf(format));
    if (point === undefined) throw failed("Failed to convert Buffer to EC_POINT");
    return output(point, outputEncoding);
  }

  generateKeys(encoding = undefined, format = undefined) {
    const form = formOf(format);
    this.#setSecret(new Uint8Array(native.ecdhGenerate(this.#curve)));
    return this.#public(encoding, form);
  }

  #setSecret(secret) {
    const point = native.ecdhPublic(this.#curve, secret, FORMS.uncompressed);
    if (point === undefined) throw codedError(RangeError, "ERR_CRYPTO_INVALID_KEYTYPE", "Private key is not valid for specified curve.");
    this.#secret = secret;
    this.#point = new Uint8Array(point);
  }

  computeSecret(otherPublicKey, inputEncoding = undefined, outputEncoding = undefined) {
    const other = keyBytes(otherPublicKey, inputEncoding, "otherPublicKey");
    if (this.#secret === null) throw failed("Failed to get ECDH private key");
    const shared = native.ecdhSecret(this.#curve, this.#secret, other);
    if (shared === undefined) throw codedError(Error, "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "Public key is not valid for specified curve");
    return output(shared, outputEncoding);
  }

  #public(encoding, form) {
    if (this.#point === null) throw failed("Failed to get ECDH public key");
    return output(native.ecdhConvert(this.#curve, this.#point, form), encoding);
  }

  getPublicKey(encoding = undefined, format = undefined) {
    return this.#public(encoding, formOf(format));
  }

  getPrivateKey(encoding = undefined) {
    if (this.#secret === null) throw failed("Failed to get ECDH private key");
    return output(this.#secret.slice().buffer, encoding);
  }

  setPrivateKey(key, encoding = undefined) {
    this.#setSecret(Uint8Array.from(keyBytes(key, encoding, "key")));
    return this;
  }

  setPublicKey(key, encoding = undefined) {
    const point = native.ecdhConvert(this.#curve, keyBytes(key, encoding, "key"), FORMS.uncompressed);
    if (point === undefined) throw failed("Failed to convert Buffer to EC_POINT");
    this.#point = new Uint8Array(point);
    return this;
  }
}

/** Text in an encoding, or bytes. */
export function keyBytes(key, encoding, name) {
  if (typeof key !== "string" && !ArrayBuffer.isView(key) && !(key instanceof ArrayBuffer)) {
    throw invalidArgument(name, "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", key);
  }
  return toBytes(key, encoding, name);
}

export function createECDH(curve) {
  return new ECDH(curve);
}
