// https://nodejs.org/api/crypto.html#class-keyobject: keys from PEM, DER or JSON, for signatures and HMAC.
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument } from "./errors.js";

const INTERNAL = Symbol("made by the module");

// Kinds and curves in the order of the numbers in crypto_der.cc and crypto.cc, with the bytes of their object identifiers.
const KINDS = [
  { type: "rsa", oid: "2a864886f70d010101" },
  { type: "ec", oid: "2a8648ce3d0201" },
  { type: "ed25519", oid: "2b6570" },
  { type: "x25519", oid: "2b656e" },
];
const CURVES = [
  { name: "prime256v1", jwk: "P-256", bytes: 32, oid: "2a8648ce3d030107" },
  { name: "secp384r1", jwk: "P-384", bytes: 48, oid: "2b81040022" },
  { name: "secp521r1", jwk: "P-521", bytes: 66, oid: "2b81040023" },
];

/** The state of a KeyObject; undefined for any other value. */
export let keyState;

function invalidKey(reason) {
  return codedError(Error, "ERR_OSSL_UNSUPPORTED", `The key cannot be read: ${reason}`);
}

export class KeyObject {
  #state; // { type, secret } or { type, kind, curve, handle }

  constructor(token, state) {
    if (token !== INTERNAL) throw codedError(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Use createSecretKey, createPublicKey or createPrivateKey.");
    this.#state = state;
  }

  get type() {
    return this.#state.type;
  }

  get symmetricKeySize() {
    return this.#state.secret?.length;
  }

  get asymmetricKeyType() {
    return KINDS[this.#state.kind]?.type;
  }

  get asymmetricKeyDetails() {
    const { kind, curve, handle } = this.#state;
    if (kind === undefined) return undefined;
    if (KINDS[kind].type === "ec") return { namedCurve: CURVES[curve].name };
    if (KINDS[kind].type !== "rsa") return {};
    const [modulus, exponent] = native.rsaParts(handle, false).map((part) => new Uint8Array(part));
    const publicExponent = exponent.reduce((number, byte) => number * 256n + BigInt(byte), 0n);
    return { modulusLength: (modulus.length - 1) * 8 + (32 - Math.clz32(modulus[0])), publicExponent };
  }

  equals(other) {
    const options = this.type === "secret" ? {} : { format: "der", type: this.type === "public" ? "spki" : "pkcs8" };
    return other instanceof KeyObject && this.type === other.type && this.export(options).equals(other.export(options));
  }

  /** https://nodejs.org/api/crypto.html#keyobjectexportoptions */
  export(options = {}) {
    const { type, secret, handle } = this.#state;
    const { format } = options;
    if (type === "secret") {
      if (format === "jwk") return { kty: "oct", k: Buffer.from(secret).toString("base64url") };
      return Buffer.from(secret);
    }
    if (format === "jwk") return exportJwk(this.#state);
    const general = Buffer.from(native.exportDer(handle, type === "private"));
    const { der, label } = inForm(general, this.#state, options.type);
    if (format === "der") return der;
    if (format !== undefined && format !== "pem") throw codedError(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", `Unknown format "${format}".`);
    return `-----BEGIN ${label}-----\n${der.toString("base64").replace(/.{64}(?=.)/g, "$&\n")}\n-----END ${label}-----\n`;
  }

  static {
    keyState = (value) => (typeof value === "object" && value !== null && #state in value ? value.#state : undefined);
  }
}

// --- DER ---

function sequence(tag, ...parts) {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const RSA_IDENTIFIER = Buffer.from("300d06092a864886f70d0101010500", "hex");

/** Wraps the older formats, for RSA or EC only, in the general ones, which name the algorithm. */
const WRAPPERS = {
  "RSA PRIVATE KEY": (der) => sequence(0x30, Buffer.from([2, 1, 0]), RSA_IDENTIFIER, sequence(0x04, der)),
  "RSA PUBLIC KEY": (der) => sequence(0x30, RSA_IDENTIFIER, sequence(0x03, Buffer.from([0]), der)),
  "EC PRIVATE KEY": (der) => {
    const curve = CURVES.find(({ oid }) => der.includes(Buffer.from(oid, "hex")));
    if (curve === undefined) throw invalidKey("its curve is not known.");
    const algorithm = sequence(0x30, sequence(0x06, Buffer.from(KINDS[1].oid, "hex")), sequence(0x06, Buffer.from(curve.oid, "hex")));
    return sequence(0x30, Buffer.from([2, 1, 0]), algorithm, sequence(0x04, der));
  },
};

/** The elements of a sequence, with and without their tag: `{ tag, whole, content }`. */
function elements(der) {
  const list = [];
  for (let at = 0; at < der.length; ) {
    const long = der[at + 1] & 0x80 ? der[at + 1] & 0x7f : 0;
    const start = at + 2 + long;
    const size = long === 0 ? der[at + 1] : der.readUIntBE(at + 2, long);
    list.push({ tag: der[at], whole: der.subarray(at, start + size), content: der.subarray(start, start + size) });
    at = start + size;
  }
  return list;
}

/** A key in the requested format: the general one, or the part of it that is specific to RSA or EC. */
function inForm(general, { type, kind, curve }, wanted) {
  const isPublic = type === "public";
  if (wanted === undefined || wanted === (isPublic ? "spki" : "pkcs8")) {
    return { der: general, label: isPublic ? "PUBLIC KEY" : "PRIVATE KEY" };
  }
  const parts = elements(elements(general)[0].content);
  if (wanted === "pkcs1" && kind === 0) {
    return isPublic
      ? { der: parts[1].content.subarray(1), label: "RSA PUBLIC KEY" }
      : { der: parts[2].content, label: "RSA PRIVATE KEY" };
  }
  if (wanted === "sec1" && kind === 1 && !isPublic) {
    // The general format omits the curve here, because it names the curve before.
    const [version, secret, ...rest] = elements(elements(parts[2].content)[0].content);
    const named = sequence(0xa0, sequence(0x06, Buffer.from(CURVES[curve].oid, "hex")));
    const point = rest.filter(({ tag }) => tag === 0xa1).map(({ whole }) => whole);
    return { der: sequence(0x30, version.whole, secret.whole, named, ...point), label: "EC PRIVATE KEY" };
  }
  throw codedError(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", `A ${type} key of ${KINDS[kind].type} cannot be exported as "${wanted}".`);
}

function exportJwk({ type, kind, curve, handle }) {
  const isPrivate = type === "private";
  const text = (bytes) => Buffer.from(bytes).toString("base64url");
  if (kind === 0) {
    const parts = native.rsaParts(handle, isPrivate);
    const names = ["n", "e", "d", "p", "q", "dp", "dq", "qi"].slice(0, parts.length);
    return { kty: "RSA", ...Object.fromEntries(names.map((name, index) => [name, text(parts[index])])) };
  }
  if (kind === 1) {
    const { jwk: crv, bytes } = CURVES[curve];
    const point = Buffer.from(native.ecPoint(handle));
    const jwk = { kty: "EC", x: text(point.subarray(1, 1 + bytes)), y: text(point.subarray(1 + bytes)), crv };
    return isPrivate ? { ...jwk, d: text(native.ecSecret(handle, curve)) } : jwk;
  }
  const jwk = { crv: kind === 2 ? "Ed25519" : "X25519", x: text(native.rawKey(handle, false)), kty: "OKP" };
  return isPrivate ? { ...jwk, d: text(native.rawKey(handle, true)) } : jwk;
}

/** The number of a curve by one of its names; -1 if unknown. */
export function findCurve(name) {
  return CURVES.findIndex((curve) => curve.name === name || curve.jwk === name);
}

/** A KeyObject for a generated private key. */
export function generatedKey(kind, curve, handle) {
  return new KeyObject(INTERNAL, { type: "private", kind, curve, handle });
}

function importDer(der, isPrivate) {
  // The kind is named near the beginning. OpenSSL then parses the key and checks it.
  const head = der.subarray(0, 48).toString("hex");
  const kind = KINDS.findIndex(({ oid }) => head.includes(`06${(oid.length / 2).toString(16).padStart(2, "0")}${oid}`));
  const curve = KINDS[kind]?.type === "ec" ? CURVES.findIndex(({ oid }) => head.includes(oid)) : undefined;
  if (kind === -1 || curve === -1) throw invalidKey("it is of a kind that is not supported.");
  const handle = native.importDer(kind, isPrivate, der, curve);
  if (handle === undefined) throw invalidKey("it is malformed, or encrypted.");
  return new KeyObject(INTERNAL, { type: isPrivate ? "private" : "public", kind, curve, handle });
}

function importPem(text, wantsPrivate) {
  const [, label, body] = /-----BEGIN ([A-Z ]+)-----([^-]+)-----END \1-----/.exec(text) ?? [];
  if (label === undefined) throw invalidKey("it is not in PEM format.");
  const isPrivate = label.endsWith("PRIVATE KEY");
  if (wantsPrivate && !isPrivate) throw invalidKey("a private key was expected.");
  const der = Buffer.from(body, "base64");
  return importDer(WRAPPERS[label]?.(der) ?? der, isPrivate);
}

function importJwk(jwk, isPrivate) {
  const part = (name) => (jwk[name] === undefined ? undefined : Buffer.from(`${jwk[name]}`, "base64url"));
  let state;
  if (jwk.kty === "EC") {
    const curve = CURVES.findIndex((each) => each.jwk === jwk.crv);
    if (curve === -1) throw invalidKey("its curve is not known.");
    const point = Buffer.concat([Buffer.from([4]), part("x") ?? Buffer.alloc(0), part("y") ?? Buffer.alloc(0)]);
    state = { kind: 1, curve, handle: native.importEc(curve, point, isPrivate ? part("d") : undefined) };
  } else if (jwk.kty === "RSA") {
    const names = isPrivate ? ["n", "e", "d", "p", "q", "dp", "dq", "qi"] : ["n", "e"];
    state = { kind: 0, handle: native.importRsa(...names.map((name) => part(name) ?? Buffer.alloc(0))) };
  } else if (jwk.kty === "OKP") {
    const number = ["Ed25519", "X25519"].indexOf(jwk.crv);
    if (number === -1) throw invalidKey("its curve is not known.");
    state = { kind: 2 + number, handle: native.importRaw(number, part(isPrivate ? "d" : "x") ?? Buffer.alloc(0), isPrivate) };
  }
  if (state?.handle === undefined) throw invalidKey("the JSON Web Key is not valid.");
  return new KeyObject(INTERNAL, { type: isPrivate ? "private" : "public", ...state });
}

function readKey(given, wantsPrivate) {
  if (keyState(given) !== undefined) return given;
  if (keyState(given?.key) !== undefined) return given.key;
  const { key, format = "pem", type } = typeof given === "string" || ArrayBuffer.isView(given) ? { key: given } : (given ?? {});
  if (format === "jwk") return importJwk(key, wantsPrivate || key?.d !== undefined);
  if (typeof key !== "string" && !ArrayBuffer.isView(key)) throw invalidArgument("key", "of type string or an instance of Buffer or KeyObject", key);
  if (format === "pem") return importPem(typeof key === "string" ? key : Buffer.from(key).toString("latin1"), wantsPrivate);
  const der = Buffer.from(key);
  if (type === "pkcs1") return importDer(WRAPPERS[wantsPrivate ? "RSA PRIVATE KEY" : "RSA PUBLIC KEY"](der), wantsPrivate);
  if (type === "sec1") return importDer(WRAPPERS["EC PRIVATE KEY"](der), true);
  return importDer(der, wantsPrivate || type === "pkcs8");
}

export function createSecretKey(key, encoding = undefined) {
  const secret = typeof key === "string" ? Buffer.from(key, encoding) : Uint8Array.from(secretBytes(key));
  return new KeyObject(INTERNAL, { type: "secret", secret });
}

export function createPrivateKey(key) {
  const made = readKey(key, true);
  if (made.type !== "private") throw codedError(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${made.type}, expected private.`);
  return made;
}

/** From a private key it makes the public key. */
export function createPublicKey(key) {
  const made = readKey(key, false);
  const { type, kind, curve, handle } = keyState(made);
  if (type === "secret") throw codedError(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", "Invalid key object type secret, expected public.");
  if (type === "public") return made;
  const half = native.importDer(kind, false, new Uint8Array(native.exportDer(handle, false)), curve);
  return new KeyObject(INTERNAL, { type: "public", kind, curve, handle: half });
}

/** The bytes of a secret: a KeyObject, text or a buffer. */
export function secretBytes(key) {
  const state = keyState(key);
  if (state !== undefined) {
    if (state.type !== "secret") throw codedError(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${state.type}, expected secret.`);
    return state.secret;
  }
  if (typeof key === "string") return Buffer.from(key);
  if (ArrayBuffer.isView(key)) return new Uint8Array(key.buffer, key.byteOffset, key.byteLength);
  if (key instanceof ArrayBuffer) return new Uint8Array(key);
  throw invalidArgument("key", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView or KeyObject", key);
}
