// https://nodejs.org/api/crypto.html#class-sign and #class-verify
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { requireResult } from "./crypto_faults.js";
import { findHash, output } from "./crypto_hash.js";
import { bytesOf } from "./crypto_key_options.js";
import { kindOf, privateState, publicState } from "./crypto_keys.js";
import { codedError, invalidArgument, invalidValue, requireFunction, requireString } from "./errors.js";
import { makeLazyTransform } from "./lazy_transform.js";

const PSS = 6; // RSA_PKCS1_PSS_PADDING
const LONGEST = -2; // RSA_PSS_SALTLEN_MAX_SIGN

function integerOption(options, name) {
  const value = options[name];
  if (value !== undefined && value !== value >> 0) throw invalidValue(`options.${name}`, value);
  return value;
}

/** The options of a signature, which are beside those of the key. */
function readOptions(options) {
  const padding = integerOption(options, "padding");
  const saltLength = integerOption(options, "saltLength") ?? (options.padding === PSS ? LONGEST : undefined);
  const { dsaEncoding = "der", context } = typeof options === "object" ? options : {};
  if (dsaEncoding !== "der" && dsaEncoding !== "ieee-p1363") throw invalidValue("options.dsaEncoding", dsaEncoding);
  if (context !== undefined && !ArrayBuffer.isView(context)) throw invalidArgument("options.context", "an instance of Buffer, TypedArray, or DataView", context);
  return [padding, saltLength, dsaEncoding === "ieee-p1363", context];
}

const keyRequired = () => codedError(Error, "ERR_CRYPTO_SIGN_KEY_REQUIRED", "No key provided to sign");
const invalidDigest = (message) => codedError(TypeError, "ERR_CRYPTO_INVALID_DIGEST", message);

// --- Objects ---

class Collector {
  #hash;
  #parts = []; // null once it was used

  constructor(algorithm) {
    requireString(algorithm, "algorithm");
    this.#hash = findHash(algorithm);
    if (this.#hash === undefined) throw invalidDigest("Invalid digest");
  }

  update(data, encoding = undefined) {
    if (typeof data === "string") {
      if (encoding === "hex" && data.length % 2 !== 0) throw invalidValue("encoding", encoding, `is invalid for data of length ${data.length}`);
    } else if (!ArrayBuffer.isView(data)) {
      throw invalidArgument("data", "of type string or an instance of Buffer, TypedArray, or DataView", data);
    }
    if (this.#parts === null) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "Not initialised");
    this.#parts.push(Buffer.from(bytesOf(data, "data", encoding)));
    return this;
  }

  _write(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }

  _transform(chunk, encoding, callback) {
    this._write(chunk, encoding, callback);
  }

  static use(collector, state, run) {
    if (collector.#parts === null) throw codedError(Error, "ERR_CRYPTO_INVALID_STATE", "Not initialised");
    // These keys hash the message themselves, so they cannot sign one that was hashed in parts.
    if (/^(ed|ml-dsa|slh-dsa)/.test(kindOf(state))) throw codedError(Error, "ERR_CRYPTO_UNSUPPORTED_OPERATION", "Unsupported crypto operation");
    const data = Buffer.concat(collector.#parts);
    collector.#parts = null;
    return native.onTheSpot(() => run(collector.#hash.number, data));
  }
}

class SignObject extends Collector {
  sign(options, encoding = undefined) {
    if (!options) throw keyRequired();
    const state = privateState(options, "privateKey");
    const manner = readOptions(options);
    const made = Collector.use(this, state, (hash, data) => native.signWith(state.handle, hash, data, ...manner));
    return output(requireResult(made, "PEM_read_bio_PrivateKey failed"), encoding);
  }
}

class VerifyObject extends Collector {
  verify(options, signature, encoding = undefined) {
    const state = publicState(options);
    const manner = readOptions(options);
    const bytes = bytesOf(signature, "signature", encoding);
    const found = Collector.use(this, state, (hash, data) => native.verifyWith(state.handle, hash, data, ...manner, bytes));
    if (found === undefined) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "Malformed signature");
    // As in Node, a digest that the key does not allow is a signature that does not match.
    return typeof found === "string" && found.includes("digest not allowed") ? false : requireResult(found, "PEM_read_bio_PUBKEY failed");
  }
}

makeLazyTransform(Collector);

/** A class that can also be called as a function, as Node's can. */
function callable(Class, name) {
  function constructor(...args) {
    return Reflect.construct(Class, args, new.target ?? Class);
  }
  Object.defineProperty(constructor, "name", { value: name });
  constructor.prototype = Class.prototype;
  Class.prototype.constructor = constructor;
  return constructor;
}

export const Sign = callable(SignObject, "Sign");
export const Verify = callable(VerifyObject, "Verify");
export const createSign = (algorithm, options) => new Sign(algorithm, options);
export const createVerify = (algorithm, options) => new Verify(algorithm, options);

// --- Functions ---

function hashNumber(algorithm) {
  if (algorithm === null || algorithm === undefined) return undefined;
  const hash = findHash(algorithm);
  if (hash === undefined) throw invalidDigest(`Invalid digest: ${algorithm}`);
  return hash.number;
}

/** Runs a native function on the spot, or off the thread if there is a callback. */
export function answer(run, callback, convert) {
  if (callback === undefined) return convert(native.onTheSpot(run));
  Promise.resolve(run())
    .then(convert)
    .then(
      (result) => callback(null, result),
      // As in Node, the errors of OpenSSL have no code here.
      (error) => callback(error.library === undefined ? error : new Error(error.message)),
    );
  return undefined;
}

function checkArguments(algorithm, callback) {
  if (algorithm !== null && algorithm !== undefined) requireString(algorithm, "algorithm");
  if (callback !== undefined) requireFunction(callback, "callback");
}

const WITH_CONTEXT = /^(ed25519|ed448|ml-dsa|slh-dsa)/;

function checkContext([, , , context], state) {
  if (context === undefined) return;
  if (context.byteLength > 255) throw codedError(RangeError, "ERR_OUT_OF_RANGE", "context string must be at most 255 bytes");
  if (!WITH_CONTEXT.test(kindOf(state))) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "Context parameter is unsupported");
}

/** https://nodejs.org/api/crypto.html#cryptosignalgorithm-data-key-callback */
export function sign(algorithm, data, key, callback = undefined) {
  checkArguments(algorithm, callback);
  const bytes = bytesOf(data, "data");
  if (!key) throw keyRequired();
  const manner = readOptions(key);
  const state = privateState(key);
  checkContext(manner, state);
  const hash = hashNumber(algorithm);
  return answer(
    () => native.signWith(state.handle, hash, bytes, ...manner),
    callback,
    (result) => Buffer.from(requireResult(result, "The key cannot sign this")),
  );
}

/** https://nodejs.org/api/crypto.html#cryptoverifyalgorithm-data-key-signature-callback */
export function verify(algorithm, data, key, signature, callback = undefined) {
  checkArguments(algorithm, callback);
  const bytes = bytesOf(data, "data");
  const manner = readOptions(key);
  const mark = bytesOf(signature, "signature");
  const state = publicState(key);
  checkContext(manner, state);
  const hash = hashNumber(algorithm);
  return answer(
    () => native.verifyWith(state.handle, hash, bytes, ...manner, mark),
    callback,
    (result) => (result === undefined ? false : requireResult(result, "The signature cannot be verified")),
  );
}
