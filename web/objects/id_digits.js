// Ids of Durable Objects: 32 bytes, of which the second half proves that the first belongs to a namespace.
//
// key = SHA-256(secret of the namespace), made by Python. By name: the first 16 bytes are the first half of HMAC-SHA256(key, name);
// otherwise they are random. The other 16 bytes are the first half of HMAC-SHA256(key, first 16 bytes).
import { native } from "../internal/native.js";
import { encodeText } from "../internal/text.js";

const HALF = 16;

function bytesOf(hex) {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) => parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}

function hexOf(bytes) {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** What proves a text to those who have the key. Half of the digest is enough. */
export function macOf(key, text) {
  return native.halfOfHmac(bytesOf(key), encodeText(text));
}

const keys = new Map(); // those of the namespaces that are used here, as bytes

function needKey(key) {
  if (key === undefined) throw new Error("The namespace of this binding is not known: deploy the worker again.");
  let bytes = keys.get(key);
  if (bytes === undefined) keys.set(key, (bytes = bytesOf(key)));
  return bytes;
}

export function hexOfPrefix(key, prefix) {
  return prefix + native.halfOfHmac(needKey(key), bytesOf(prefix));
}

export function hexOfName(key, name) {
  return hexOfPrefix(key, native.halfOfHmac(needKey(key), encodeText(name)));
}

export function randomHex() {
  const bytes = new Uint8Array(HALF);
  native.fillRandom(bytes);
  return hexOf(bytes);
}

export function isHexOf(key, hex) {
  return key !== undefined && hexOfPrefix(key, hex.slice(0, 2 * HALF)) === hex;
}

/** The jurisdiction whose key proves the id; undefined if none does. */
export function jurisdictionOf(keys, hex) {
  return Object.keys(keys).find((name) => isHexOf(keys[name], hex));
}
