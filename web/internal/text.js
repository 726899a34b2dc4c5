// UTF-8 for the platform's own use, whatever a worker did to TextEncoder.
import { native } from "./native.js";

const { encodeUtf8, decodeUtf8 } = native;

const SHORT = 64; // up to here V8 keeps a typed array on its own heap, ten times as cheap as one with a buffer

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

/** https://encoding.spec.whatwg.org/#utf-8-decode: malformed input is replaced, a byte order mark is dropped. */
export function decodeText(bytes) {
  return decodeUtf8(bytes, false, false);
}

/** https://encoding.spec.whatwg.org/#utf-8-decode-without-bom */
export function decodeTextKeepingMark(bytes) {
  return decodeUtf8(bytes, false, true);
}
