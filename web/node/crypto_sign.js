// https://nodejs.org/api/crypto.html#class-sign and #class-verify
import { native } from "../internal/native.js";
import { queueMicrotask } from "../timers.js";
import { Buffer } from "./buffer.js";
import { createPrivateKey, createPublicKey, keyState } from "./crypto_keys.js";
import { output, requireHash, toBytes } from "./crypto_hash.js";
import { codedError } from "./errors.js";
import { makeLazyTransform } from "./lazy_transform.js";

const RSA_PKCS1_PSS_PADDING = 6;
const HASH_BYTES = [16, 20, 32, 48, 64, 32, 48, 64, 28, 32, 20, 28, 28, 64, 32, 36, 32]; // by the number of the hash

function integer(bytes) {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const content = bytes[start] & 0x80 ? [0, ...bytes.subarray(start)] : [...bytes.subarray(start)];
  return [2, content.length, ...content];
}

/** Converts an elliptic curve signature to DER, Node's default. OpenSSL returns the two numbers concatenated. */
function toDer(raw) {
  const half = raw.length / 2;
  const body = [...integer(raw.subarray(0, half)), ...integer(raw.subarray(half))];
  return Buffer.from([0x30, ...(body.length < 128 ? [body.length] : [0x81, body.length]), ...body]);
}

function fromDer(der, half) {
  let at = der[1] === 0x81 ? 3 : 2;
  const raw = Buffer.alloc(half * 2);
  for (let part = 0; part < 2; part++) {
    if (der[0] !== 0x30 || der[at] !== 2) return null;
    let bytes = der.subarray(at + 2, at + 2 + der[at + 1]);
    at += 2 + der[at + 1];
    while (bytes.length > half && bytes[0] === 0) bytes = bytes.subarray(1);
    if (bytes.length > half || bytes.length === 0) return null;
    raw.set(bytes, half * (part + 1) - bytes.length);
  }
  return at === der.length ? raw : null;
}

// The salt length of PSS: that of the hash (-1), or the longest possible (-2, Node's default for signing).
function saltLength({ padding, saltLength: wanted }, hash, handle) {
  if (padding !== RSA_PKCS1_PSS_PADDING) return undefined;
  if (wanted >= 0) return wanted;
  const size = HASH_BYTES[hash.number];
  if (wanted === -1) return size;
  return native.rsaParts(handle, false)[0].byteLength - size - 2;
}

function signBytes(hash, data, key, options) {
  const { kind, curve, handle } = keyState(createPrivateKey(key));
  let signature;
  if (kind === 2) signature = native.onTheSpot(() => native.signEd25519(handle, data));
  else if (hash === null) throw codedError(Error, "ERR_CRYPTO_INVALID_DIGEST", "This kind of key needs a digest.");
  else if (kind === 0) signature = native.onTheSpot(() => native.signRsa(handle, hash.number, data, saltLength(options, hash, handle)));
  else if (kind === 1) signature = native.onTheSpot(() => native.signEcdsa(handle, curve, hash.number, data));
  if (signature === undefined) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The key cannot sign this.");
  const bytes = Buffer.from(signature);
  return kind === 1 && options.dsaEncoding !== "ieee-p1363" ? toDer(bytes) : bytes;
}

function verifyBytes(hash, data, key, signature, options) {
  const { kind, curve, handle } = keyState(createPublicKey(key));
  if (kind === 2) return native.onTheSpot(() => native.verifyEd25519(handle, signature, data)) === true;
  if (hash === null) throw codedError(Error, "ERR_CRYPTO_INVALID_DIGEST", "This kind of key needs a digest.");
  if (kind === 0) {
    return native.onTheSpot(() => native.verifyRsa(handle, hash.number, signature, data, saltLength(options, hash, handle))) === true;
  }
  const raw = options.dsaEncoding === "ieee-p1363" ? signature : fromDer(signature, [32, 48, 66][curve]);
  return raw !== null && native.onTheSpot(() => native.verifyEcdsa(handle, curve, hash.number, raw, data)) === true;
}

const optionsOf = (key) => (typeof key === "object" && key !== null && !ArrayBuffer.isView(key) ? key : {});

class Collector {
  #hash;
  #parts = [];

  constructor(algorithm) {
    this.#hash = requireHash(algorithm);
  }

  update(data, encoding = undefined) {
    this.#parts.push(Buffer.from(toBytes(data, encoding)));
    return this;
  }

  _write(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }

  _transform(chunk, encoding, callback) {
    this._write(chunk, encoding, callback);
  }

  static use(collector, run) {
    return run(collector.#hash, Buffer.concat(collector.#parts));
  }
}

export class Sign extends Collector {
  sign(privateKey, encoding = undefined) {
    return output(Collector.use(this, (hash, data) => signBytes(hash, data, privateKey, optionsOf(privateKey))), encoding);
  }
}

export class Verify extends Collector {
  verify(key, signature, encoding = undefined) {
    const bytes = toBytes(signature, encoding, "signature");
    return Collector.use(this, (hash, data) => verifyBytes(hash, data, key, bytes, optionsOf(key)));
  }
}

makeLazyTransform(Collector);

export function createSign(algorithm) {
  return new Sign(algorithm);
}

export function createVerify(algorithm) {
  return new Verify(algorithm);
}

const hashOrNull = (algorithm) => (algorithm === null || algorithm === undefined ? null : requireHash(algorithm));

function answer(callback, run) {
  if (callback === undefined) return run();
  let result;
  try {
    result = run();
  } catch (error) {
    queueMicrotask(() => callback(error));
    return undefined;
  }
  queueMicrotask(() => callback(null, result));
  return undefined;
}

export function sign(algorithm, data, key, callback = undefined) {
  return answer(callback, () => signBytes(hashOrNull(algorithm), toBytes(data), key, optionsOf(key)));
}

export function verify(algorithm, data, key, signature, callback = undefined) {
  return answer(callback, () => verifyBytes(hashOrNull(algorithm), toBytes(data), key, toBytes(signature), optionsOf(key)));
}
