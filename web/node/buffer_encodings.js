// Converts between text and bytes in the encodings of Node's Buffer.
// https://nodejs.org/api/buffer.html#buffers-and-character-encodings
import { native } from "../internal/native.js";
import { decodeTextKeepingMark, encodeText } from "../internal/text.js";
import { codedError } from "./errors.js";

const NAMES = {
  utf8: "utf8", "utf-8": "utf8", ucs2: "utf16le", "ucs-2": "utf16le", utf16le: "utf16le", "utf-16le": "utf16le",
  latin1: "latin1", binary: "latin1", base64: "base64", base64url: "base64url", hex: "hex", ascii: "ascii",
};

/** The canonical name of an encoding, in any case; undefined if it is unknown. */
export function encodingName(name) {
  if (name === undefined || name === null || name === "") return "utf8";
  return Object.hasOwn(NAMES, name) ? NAMES[name] : NAMES[`${name}`.toLowerCase()];
}

function requireKnown(known, name) {
  if (known === undefined) throw codedError(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${name}`);
  return known;
}

export function requireEncoding(name) {
  return requireKnown(encodingName(name), name);
}

/** Like requireEncoding, but an empty name is an error. */
export function requireNamed(name) {
  return requireKnown(name === "" || name === null ? undefined : encodingName(name), name);
}

function latin1Bytes(text) {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function utf16Bytes(text) {
  const bytes = new Uint8Array(text.length * 2);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    bytes[2 * i] = unit;
    bytes[2 * i + 1] = unit >> 8;
  }
  return bytes;
}

function hexDigit(code) {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

// Stops at the first pair that is not hexadecimal, as Node does.
function hexBytes(text) {
  const bytes = new Uint8Array(text.length >> 1);
  for (let i = 0; i < bytes.length; i++) {
    const high = hexDigit(text.charCodeAt(2 * i));
    const low = hexDigit(text.charCodeAt(2 * i + 1));
    if (high < 0 || low < 0) return bytes.subarray(0, i);
    bytes[i] = (high << 4) | low;
  }
  return bytes;
}

// Lenient: accepts both alphabets, needs no padding, skips other characters, and ends at the first `=`.
function base64Bytes(text) {
  const padding = text.indexOf("=");
  let digits = padding === -1 ? text : text.slice(0, padding);
  if (/[^A-Za-z0-9+/]/.test(digits)) digits = digits.replace(/-/g, "+").replace(/_/g, "/").replace(/[^A-Za-z0-9+/]/g, "");
  if (digits.length % 4 === 1) digits = digits.slice(0, -1);
  return latin1Bytes(native.atob(digits));
}

/** Text to bytes. Lone surrogates become U+FFFD in UTF-8. */
export function encode(text, encoding) {
  switch (encoding) {
    case "utf8":
      return encodeText(text);
    case "utf16le":
      return utf16Bytes(text);
    case "hex":
      return hexBytes(text);
    case "base64":
    case "base64url":
      return base64Bytes(text);
    default:
      return latin1Bytes(text);
  }
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function toHex(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i]];
  return text;
}

// A few thousand units at a time, because the number of arguments of a function is limited.
function fromUnits(count, unitAt) {
  let text = "";
  for (let start = 0; start < count; start += 4096) {
    const units = Array.from({ length: Math.min(4096, count - start) }, (_, i) => unitAt(start + i));
    text += String.fromCharCode(...units);
  }
  return text;
}

function toBase64(bytes) {
  return native.btoa(native.decodeLatin1(bytes));
}

/** Bytes to text. Malformed UTF-8 becomes U+FFFD; a byte order mark is kept. */
export function decode(bytes, encoding) {
  switch (encoding) {
    case "utf8":
      return decodeTextKeepingMark(bytes);
    case "utf16le":
      return fromUnits(bytes.length >> 1, (i) => bytes[2 * i] | (bytes[2 * i + 1] << 8));
    case "hex":
      return toHex(bytes);
    case "base64":
      return toBase64(bytes);
    case "base64url":
      return toBase64(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
    case "ascii":
      return fromUnits(bytes.length, (i) => bytes[i] & 0x7f);
    default:
      return native.decodeLatin1(bytes);
  }
}

/** The number of bytes of a text, without encoding it where possible. */
export function encodedLength(text, encoding) {
  switch (encoding) {
    case "utf8":
      return native.utf8Length(text);
    case "utf16le":
      return text.length * 2;
    case "hex":
      return text.length >>> 1;
    case "base64":
    case "base64url": {
      const end = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
      return Math.floor(((text.length - end) * 3) / 4);
    }
    default:
      return text.length;
  }
}
