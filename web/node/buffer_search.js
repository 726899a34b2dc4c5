// Searches in a Buffer. https://nodejs.org/api/buffer.html#bufindexofvalue-byteoffset-encoding
import { encode, encodingName, requireNamed } from "./buffer_encodings.js";
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

// Where the search begins, as in Node: -1 if nothing can be found.
function startOf(length, offset, size, backward) {
  if (offset < 0) {
    if (offset + length >= 0) return length + offset;
    return !backward || size === 0 ? 0 : -1;
  }
  if (offset + size <= length) return offset;
  if (size === 0) return length;
  return backward ? length - 1 : -1;
}

/** The index of a byte, a text or a sequence of bytes; -1 if it is not found. */
export function findIn(buffer, value, byteOffset, encoding, backward) {
  if (!ArrayBuffer.isView(buffer)) throw invalidArgument("buffer", "an instance of Buffer, TypedArray, or DataView", buffer);
  let offset = byteOffset;
  let name = encoding;
  if (typeof offset === "string") [offset, name] = [undefined, offset];
  offset = Number(offset);
  if (Number.isNaN(offset)) offset = backward ? buffer.length : 0;
  offset = Math.trunc(Math.max(-0x80000000, Math.min(0x7fffffff, offset)));
  if (typeof value === "number") {
    const at = startOf(buffer.length, offset, 1, backward);
    if (at === -1 || buffer.length === 0) return -1;
    return backward ? lastIndexOf.call(buffer, value & 255, at) : indexOf.call(buffer, value & 255, at);
  }
  const isText = typeof value === "string";
  if (!isText && !(value instanceof Uint8Array)) {
    throw invalidArgument("value", "one of type number or string or an instance of Buffer or Uint8Array", value);
  }
  const known = name === undefined ? "utf8" : isText ? requireNamed(name) : encodingName(name);
  const needle = isText ? encode(value, known) : value;
  const start = startOf(buffer.length, offset, needle.length, backward);
  // An empty value is found everywhere.
  if (start === -1 || needle.length === 0) return start;
  if (needle.length > buffer.length || (!backward && start + needle.length > buffer.length)) return -1;
  // Units of two bytes are found at even positions only.
  if (known !== "utf16le") return backward ? findBackward(buffer, needle, start, 1) : findForward(buffer, needle, start, 1);
  if (needle.length < 2 || buffer.length < 2) return -1;
  const [units, even] = [needle.subarray(0, needle.length & ~1), start & ~1];
  return backward ? findBackward(buffer, units, even, 2) : findForward(buffer, units, even, 2);
}
