// UTF-8 independent of what a worker does to TextEncoder, and white space.
import { native } from "./native.js";

const { encodeUtf8, decodeUtf8 } = native;

/** https://fetch.spec.whatwg.org/#http-whitespace */
export const HTTP_WHITESPACE = "\t\n\r ";
/** https://infra.spec.whatwg.org/#ascii-whitespace */
export const ASCII_WHITESPACE = "\t\n\f\r ";

/** Removes these characters from the end. A loop, because /[ ]+$/ takes quadratic time for inner runs of spaces. */
export function stripEnd(text, spaces) {
  let end = text.length;
  while (end > 0 && spaces.includes(text[end - 1])) end--;
  return text.slice(0, end);
}

/** Removes these characters from both ends. */
export function strip(text, spaces) {
  let start = 0;
  while (start < text.length && spaces.includes(text[start])) start++;
  return stripEnd(text.slice(start), spaces);
}

const SHORT = 64; // up to this length V8 keeps a typed array on its own heap, which is ten times cheaper than a buffer

/** https://encoding.spec.whatwg.org/#utf-8-encode */
export function encodeText(string) {
  const { length } = string;
  if (length > SHORT) return encodeUtf8(string);
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const code = string.charCodeAt(i);
    if (code > 127) return encodeUtf8(string);
    bytes[i] = code;
  }
  return bytes;
}

/** https://encoding.spec.whatwg.org/#utf-8-decode: replaces malformed input and drops a byte order mark. */
export function decodeText(bytes) {
  return decodeUtf8(bytes, false, false);
}

/** https://encoding.spec.whatwg.org/#utf-8-decode-without-bom */
export function decodeTextKeepingMark(bytes) {
  return decodeUtf8(bytes, false, true);
}
