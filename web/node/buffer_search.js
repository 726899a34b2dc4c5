// Searches in a Buffer. https://nodejs.org/api/buffer.html#bufindexofvalue-byteoffset-encoding
import { encode, requireNamed } from "./buffer_encodings.js";
import { invalidArgument } from "./errors.js";

const { indexOf, lastIndexOf } = Uint8Array.prototype;

function matchesAt(buffer, needle, at) {
  for (let i = 1; i < needle.length; i++) if (buffer[at + i] !== needle[i]) return false;
  return true;
}

function findForward(buffer, needle, start, step) {
  const last = buffer.length - needle.length;
  for (let at = start; at <= last; at++) {
    at = indexOf.call(buffer, needle[0], at);
    if (at === -1 || at > last) return -1;
    if (at % step === 0 && matchesAt(buffer, needle, at)) return at;
  }
  return -1;
}

function findBackward(buffer, needle, start, step) {
  for (let at = Math.min(start, buffer.length - needle.length); at >= 0; at--) {
    at = lastIndexOf.call(buffer, needle[0], at);
    if (at === -1) return -1;
    if (at % step === 0 && matchesAt(buffer, needle, at)) return at;
  }
  return -1;
}

/** The index of a byte, a text or a sequence of bytes; -1 if it is not found. */
export function findIn(buffer, value, byteOffset, encoding, backward) {
  let offset = byteOffset;
  let name = encoding;
  if (typeof offset === "string") [offset, name] = [undefined, offset];
  let start = Number(offset);
  if (Number.isNaN(start)) start = backward ? buffer.length - 1 : 0;
  start = Math.trunc(start);
  if (start < 0) start += buffer.length;
  const isText = typeof value === "string";
  const known = isText && name !== undefined ? requireNamed(name) : "utf8";
  const needle = isText ? encode(value, known) : value;
  // An empty value is found everywhere.
  if (needle?.length === 0) {
    if (backward && Number.isNaN(Number(offset))) return buffer.length;
    return Math.max(0, Math.min(start, buffer.length));
  }
  if (start < 0) {
    if (backward) return -1;
    start = 0;
  }
  if (typeof value === "number") {
    const byte = value & 255;
    return backward ? lastIndexOf.call(buffer, byte, start) : indexOf.call(buffer, byte, start);
  }
  if (!isText && !(value instanceof Uint8Array)) {
    throw invalidArgument("value", "one of type number or string or an instance of Buffer or Uint8Array", value);
  }
  // Units of two bytes are found at even positions only.
  const step = isText && known === "utf16le" ? 2 : 1;
  return backward ? findBackward(buffer, needle, start, step) : findForward(buffer, needle, start, step);
}
