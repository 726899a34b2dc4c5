// https://w3c.github.io/webcrypto/#JsonWebKey-dictionary
import { native } from "../internal/native.js";
import { decodeText } from "../internal/text.js";
import { toDOMString } from "../internal/webidl.js";
import { dataError } from "./errors.js";
import { toSequenceOf } from "./idl.js";

const toBoolean = (value) => !!value;
const toStrings = (value) => toSequenceOf(toDOMString, value, "JsonWebKey");
const toObjects = (value) => toSequenceOf((item) => item, value, "JsonWebKey");

// In the order in which Web IDL reads them.
const MEMBERS = [
  ["alg", toDOMString], ["crv", toDOMString], ["d", toDOMString], ["dp", toDOMString], ["dq", toDOMString],
  ["e", toDOMString], ["ext", toBoolean], ["k", toDOMString], ["key_ops", toStrings], ["kty", toDOMString],
  ["n", toDOMString], ["oth", toObjects], ["p", toDOMString], ["priv", toDOMString], ["pub", toDOMString], ["q", toDOMString], ["qi", toDOMString],
  ["use", toDOMString], ["x", toDOMString], ["y", toDOMString],
];

/** https://webidl.spec.whatwg.org/#js-dictionary */
export function toJsonWebKey(value) {
  const key = { __proto__: null };
  if (value === undefined || value === null) return key;
  if (typeof value !== "object" && typeof value !== "function") throw new TypeError("The key is not a JsonWebKey.");
  for (const [name, convert] of MEMBERS) {
    const member = value[name];
    if (member !== undefined) key[name] = convert(member);
  }
  return key;
}

/** https://w3c.github.io/webcrypto/#concept-parse-a-jwk */
export function parseJsonWebKey(bytes) {
  let value;
  try {
    value = JSON.parse(decodeText(bytes));
  } catch {
    throw dataError("The key is not JSON.");
  }
  if (typeof value !== "object" || value === null) throw dataError("The key is not a JSON object.");
  const key = toJsonWebKey(value);
  if (key.kty === undefined) throw dataError("The JSON Web Key has no kty.");
  return key;
}

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/** https://www.rfc-editor.org/rfc/rfc7515#section-2: the bytes of a member. */
export function decodeMember(key, name) {
  const text = key[name];
  if (text === undefined) throw dataError(`The JSON Web Key has no member ${name}.`);
  const binary = BASE64URL.test(text) ? native.atob(text.replaceAll("-", "+").replaceAll("_", "/")) : undefined;
  if (binary === undefined) throw dataError(`The member ${name} of the JSON Web Key is not base64url.`);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function encodeMember(buffer) {
  const text = native.btoa(native.decodeLatin1(new Uint8Array(buffer)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The checks of every algorithm: the key type, and that the key permits the intended use. */
export function checkJsonWebKey(key, kty, use, extractable, usages) {
  if (key.kty !== kty) throw dataError(`The kty of the JSON Web Key is not "${kty}".`);
  if (usages.length > 0 && key.use !== undefined && key.use !== use) {
    throw dataError(`The JSON Web Key is not for this use: "${key.use}".`);
  }
  if (key.key_ops !== undefined) {
    // https://www.rfc-editor.org/rfc/rfc7517#section-4.3
    if (new Set(key.key_ops).size !== key.key_ops.length) throw dataError("The key_ops of the JSON Web Key repeat.");
    if (!usages.every((usage) => key.key_ops.includes(usage))) {
      throw dataError("The key_ops of the JSON Web Key do not allow all of these usages.");
    }
  }
  if (key.ext === false && extractable) throw dataError("The JSON Web Key must not be extractable: its ext is false.");
}
