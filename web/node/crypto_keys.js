// https://nodejs.org/api/crypto.html#class-keyobject: keys in all formats. OpenSSL reads and writes them (crypto_keys.cc).
import { native } from "../internal/native.js";
import { stateOf } from "../crypto/key.js";
import { lazy } from "../internal/lazy.js";
import { Buffer } from "./buffer.js";
import { opensslError, requireResult } from "./crypto_faults.js";
import { exportJwk, importJwk } from "./crypto_jwk.js";
import { bytesOf, ENCODINGS, incompatible, isBuffer, isText, readEncoding, requireOptions } from "./crypto_key_options.js";
import { codedError, invalidArgument, invalidValue } from "./errors.js";

const INTERNAL = Symbol("made by the module");
const NOTHING = new Uint8Array(0);

/** The state of a KeyObject, `{ type, secret }` or `{ type, handle }`, and `isSealed` if it may not be exported; undefined for any other value. */
export let keyState;

function wrongType(type, expected) {
  return codedError(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${type}, expected ${expected}.`);
}

function requireExtractable({ isSealed }) {
  if (isSealed) throw codedError(TypeError, "ERR_INVALID_ARG_VALUE", "The CryptoKey is not extractable");
}

export class KeyObject {
  #state;

  constructor(type, handle, state = undefined) {
    if (type !== "secret" && type !== "public" && type !== "private") throw invalidValue("type", type);
    if (handle !== INTERNAL) throw invalidArgument("handle", "of type object", handle);
    this.#state = state;
  }

  /** https://nodejs.org/api/crypto.html#static-method-keyobjectfromkey */
  static from(key) {
    const made = fromCryptoKey(key);
    if (made === undefined) throw invalidArgument("key", "an instance of CryptoKey", key);
    return made;
  }

  get type() {
    return this.#state.type;
  }

  get [Symbol.toStringTag]() {
    return "KeyObject";
  }

  /** https://nodejs.org/api/crypto.html#keyobjecttocryptokeyalgorithm-extractable-keyusages */
  toCryptoKey(algorithm, extractable, keyUsages) {
    return lazy("node/crypto_web_keys.js").toCryptoKey(this, algorithm, extractable, keyUsages);
  }

  equals(other) {
    const [ours, theirs] = [this.#state, keyState(other)];
    if (theirs === undefined) throw invalidArgument("otherKeyObject", "an instance of KeyObject", other);
    if (ours.type !== theirs.type) return false;
    if (this === other) return true;
    if (ours.isSealed || theirs.isSealed) return false;
    if (ours.type === "secret") return ours.secret.length === theirs.secret.length && native.equalBytes(ours.secret, theirs.secret);
    return native.equalKeys(ours.handle, theirs.handle) === true;
  }

  static {
    keyState = (value) => (typeof value === "object" && value !== null && #state in value ? value.#state : undefined);
  }
}

export class SecretKeyObject extends KeyObject {
  get symmetricKeySize() {
    return keyState(this).secret.length;
  }

  export(options = undefined) {
    const state = keyState(this);
    if (options !== undefined) {
      requireOptions(options);
      const { format } = options;
      if (format !== undefined && format !== "buffer" && format !== "jwk") throw invalidValue("options.format", format, "must be one of: undefined, 'buffer', 'jwk'");
      requireExtractable(state);
      if (format === "jwk") return { kty: "oct", k: Buffer.from(state.secret).toString("base64url") };
    }
    requireExtractable(state);
    return Buffer.from(state.secret);
  }
}

function readInfo(state) {
  state.info ??= native.keyInfo(state.handle).split(" ");
  return state.info;
}

function detailsOf([kind, ...parts]) {
  if (kind === "ec") return { namedCurve: parts[0] };
  if (kind === "dsa") return { modulusLength: +parts[0], divisorLength: +parts[1] };
  if (kind !== "rsa" && kind !== "rsa-pss") return {};
  const [bits, exponent, hashAlgorithm, mgf1HashAlgorithm, saltLength] = parts;
  const details = { modulusLength: +bits, publicExponent: BigInt(`0x${exponent}`) };
  return hashAlgorithm === undefined ? details : { ...details, hashAlgorithm, mgf1HashAlgorithm, saltLength: +saltLength };
}

/** The kind of an asymmetric key, in Node's words. */
export function kindOf(state) {
  const [kind] = readInfo(state);
  return kind === "dhx" ? "dh" : kind;
}

class AsymmetricKeyObject extends KeyObject {
  get asymmetricKeyType() {
    return kindOf(keyState(this));
  }

  get asymmetricKeyDetails() {
    const state = keyState(this);
    state.details ??= detailsOf(readInfo(state));
    return state.details;
  }
}

/** The key in the form that the options ask for; `readEncoding` has read them. */
export function writeKey({ handle, type, ...rest }, { format, type: encoding, cipher, passphrase = NOTHING }) {
  const isPrivate = type === "private";
  if (format === "jwk") {
    const state = { handle, ...rest };
    return exportJwk(handle, kindOf(state), detailsOf(readInfo(state)).namedCurve, isPrivate);
  }
  const written = native.writeKey(handle, isPrivate, ENCODINGS[encoding], format === "pem", cipher, passphrase);
  if (written === undefined) throw codedError(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
  if (typeof written === "string") throw opensslError(written, "Failed to encode the key");
  const bytes = Buffer.from(written);
  return format === "pem" ? bytes.toString("latin1") : bytes;
}

export class PublicKeyObject extends AsymmetricKeyObject {
  export(options = undefined) {
    const state = keyState(this);
    const encoding = options?.format === "jwk" ? options : readEncoding(options, this.asymmetricKeyType, true);
    requireExtractable(state);
    return writeKey(state, encoding);
  }
}

export class PrivateKeyObject extends AsymmetricKeyObject {
  export(options = undefined) {
    const state = keyState(this);
    if (options?.passphrase !== undefined && options.format !== "pem" && options.format !== "der") throw incompatible(options.format, "does not support encryption");
    const encoding = options?.format === "jwk" ? options : readEncoding(options, this.asymmetricKeyType, false);
    requireExtractable(state);
    return writeKey(state, encoding);
  }
}

const CLASSES = { secret: SecretKeyObject, public: PublicKeyObject, private: PrivateKeyObject };

/** A KeyObject for a state. */
export function makeKey(state) {
  return new CLASSES[state.type](state.type, INTERNAL, state);
}

const made = new WeakMap(); // CryptoKey -> KeyObject

function fromCryptoKey(key) {
  const state = stateOf(key);
  if (state === undefined) return undefined;
  if (!made.has(key)) {
    const secret = state.type === "secret" ? { secret: new Uint8Array(native.exportSecret(state.handle)) } : { handle: state.handle };
    made.set(key, makeKey({ type: state.type, isSealed: !state.extractable, ...secret }));
  }
  return made.get(key);
}

const asKeyObject = (key) => (keyState(key) === undefined ? fromCryptoKey(key) : key);

// --- Reading ---

// What a key is for.
const VERIFY = { isPrivate: undefined }; // a public key, or the public half of a private one
const SIGN = { isPrivate: false };
const MAKE_PUBLIC = { isPrivate: undefined, makes: true };
const MAKE_PRIVATE = { isPrivate: false, makes: true };

const BUFFERS = "an instance of ArrayBuffer, Buffer, TypedArray,";
const expected = (use) => `of type string or ${BUFFERS} ${use === MAKE_PRIVATE ? "or DataView" : "DataView, KeyObject, or CryptoKey"}`;

function checkObject(key, use, name) {
  const { type } = keyState(key);
  if (use === MAKE_PRIVATE) throw invalidArgument(name, expected(use), key);
  if (type !== "private") {
    if (use === SIGN || use === MAKE_PUBLIC) throw wrongType(type, "private");
    if (type !== "public") throw wrongType(type, "private or public");
  }
  return keyState(key);
}

// The first byte after the version of an RSA private key is the tag of a number; a public key has one number less.
function isRsaPrivate(der) {
  if (der.length < 5 || der[0] !== 0x30) return false;
  const start = der[1] & 0x80 ? 2 + (der[1] & 0x7f) : 2;
  return der[start] === 2 && der[start + 1] === 1 && (der[start + 2] & 0xfe) === 0;
}

function readBytes(bytes, { format = "pem", type, passphrase }, wantsPrivate) {
  const isPem = format === "pem";
  const encoding = ENCODINGS[type] ?? 0;
  const read = (isPrivate) => native.readKey(bytes, isPem, encoding, isPrivate, passphrase);
  let isPrivate = wantsPrivate;
  if (!wantsPrivate) {
    if (isPem) isPrivate = native.isPublicPem(bytes) === false;
    else isPrivate = type === "pkcs8" || type === "sec1" || (type === "pkcs1" && isRsaPrivate(bytes));
  }
  const handle = read(isPrivate);
  if (handle === false) throw codedError(TypeError, "ERR_MISSING_PASSPHRASE", "Passphrase required for encrypted key");
  if (!isPrivate && !isPem && typeof handle === "string") throw new Error("Failed to read asymmetric key");
  return { handle: requireResult(handle, wantsPrivate ? "Failed to read private key" : "Failed to read asymmetric key"), type: isPrivate ? "private" : "public" };
}

/** The state of the key that `given` is or describes. `name` is that of the argument, for errors. */
function readKey(given, use, name = "key") {
  const object = asKeyObject(given);
  if (object !== undefined) return checkObject(object, use, name);
  if (isText(given)) return readBytes(bytesOf(given, name), {}, use.isPrivate === false);
  if (typeof given !== "object") throw invalidArgument(name, expected(use), given);
  const { key, format, encoding } = given;
  const inner = asKeyObject(key);
  if (inner !== undefined) return checkObject(inner, use, name);
  if (format === "jwk") return importJwk(key, use === MAKE_PRIVATE, `${name}.key`);
  if (!isText(key)) throw invalidArgument(`${name}.key`, expected(use), key);
  return readBytes(bytesOf(key, name, encoding), readEncoding(given, undefined, use.isPrivate, name), use.isPrivate === false);
}

/** The state of a private key for an operation. */
export const privateState = (key, name) => readKey(key, SIGN, name);
/** The state of a public key for an operation. It may be that of a private key. */
export const publicState = (key, name) => readKey(key, VERIFY, name);

export function createSecretKey(key, encoding = undefined) {
  if (!isText(key)) throw invalidArgument("key", `${BUFFERS} or DataView`, key);
  return makeKey({ type: "secret", secret: Uint8Array.from(bytesOf(key, "key", encoding)) });
}

export function createPrivateKey(key) {
  return makeKey(readKey(key, MAKE_PRIVATE));
}

/** From a private key it makes the public key. */
export function createPublicKey(key) {
  const { handle } = readKey(key, MAKE_PUBLIC);
  return makeKey({ type: "public", handle });
}

/** The bytes of a secret: a KeyObject, a CryptoKey, text or a buffer. */
export function secretBytes(key, encoding = undefined, name = "key") {
  const state = keyState(asKeyObject(key));
  if (state !== undefined) {
    if (state.type !== "secret") throw wrongType(state.type, "secret");
    return state.secret;
  }
  if (typeof key !== "string" && !isBuffer(key)) throw invalidArgument(name, `of type string or ${BUFFERS} DataView, KeyObject, or CryptoKey`, key);
  return bytesOf(key, name, encoding);
}
