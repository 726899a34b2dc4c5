// https://tc39.es/proposal-arraybuffer-base64/spec/, part of ECMAScript 2026: bytes as base64 and hex, until V8 14.0 provides it.
import { decodeText } from "../internal/text.js";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const CODES = { base64: codesOf(`${ALPHABET}+/`), base64url: codesOf(`${ALPHABET}-_`) };
const VALUES = { base64: valuesOf(CODES.base64), base64url: valuesOf(CODES.base64url) };
const HEX = codesOf("0123456789abcdef");
const PAD = 61; // =
const HANDLING = ["loose", "strict", "stop-before-partial"];

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const tagOf = Object.getOwnPropertyDescriptor(typedArray, Symbol.toStringTag).get;
const bufferOf = Object.getOwnPropertyDescriptor(typedArray, "buffer").get;
const lengthOf = Object.getOwnPropertyDescriptor(typedArray, "length").get;
const isDetached = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "detached").get;

function codesOf(text) {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function valuesOf(codes) {
  const values = new Int8Array(128).fill(-1);
  codes.forEach((code, value) => (values[code] = value));
  return values;
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-validateuint8array */
export function requireBytes(value, method) {
  if (tagOf.call(value) !== "Uint8Array") throw new TypeError(`Uint8Array.prototype.${method}: this is not a Uint8Array.`);
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-getuint8arraybytes, up to the length. */
function liveLength(bytes) {
  if (isDetached.call(bufferOf.call(bytes))) throw new TypeError("The buffer of the Uint8Array is detached.");
  return lengthOf.call(bytes);
}

function optionsOf(options) {
  if (options === undefined) return Object.create(null);
  if (options === null || (typeof options !== "object" && typeof options !== "function")) throw new TypeError("The options are not an object.");
  return options;
}

function pick(value, choices, name) {
  if (value === undefined) return choices[0];
  if (!choices.includes(value)) throw new TypeError(`The option ${name} is not one of ${choices.join(", ")}.`);
  return value;
}

const pickAlphabet = (options) => pick(options.alphabet, ["base64", "base64url"], "alphabet");

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-uint8array.prototype.tobase64 */
export function toBase64(bytes, options) {
  const given = optionsOf(options);
  const codes = CODES[pickAlphabet(given)];
  const isBare = Boolean(given.omitPadding);
  const length = liveLength(bytes);
  const text = new Uint8Array(Math.ceil(length / 3) * 4);
  let to = 0;
  for (let i = 0; i < length; i += 3) {
    const bits = (bytes[i] << 16) | (bytes[i + 1] << 8) | bytes[i + 2]; // undefined beyond the end, which counts as 0
    text[to++] = codes[bits >> 18];
    text[to++] = codes[(bits >> 12) & 63];
    text[to++] = i + 1 < length ? codes[(bits >> 6) & 63] : PAD;
    text[to++] = i + 2 < length ? codes[bits & 63] : PAD;
  }
  const padding = (3 - (length % 3)) % 3;
  return decodeText(isBare ? text.subarray(0, to - padding) : text);
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-uint8array.prototype.tohex */
export function toHex(bytes) {
  const length = liveLength(bytes);
  const text = new Uint8Array(length * 2);
  for (let i = 0; i < length; i++) {
    text[2 * i] = HEX[bytes[i] >> 4];
    text[2 * i + 1] = HEX[bytes[i] & 15];
  }
  return decodeText(text);
}

function requireText(string) {
  if (typeof string !== "string") throw new TypeError("The first argument is not a string.");
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-frombase64: writes to `bytes`; returns { read, written, error }. */
function decode(string, alphabet, handling, bytes) {
  const most = bytes.length;
  const values = VALUES[alphabet];
  const { length } = string;
  let read = 0;
  let written = 0;
  let bits = 0; // of the characters in the current chunk of four
  let have = 0; // number of characters in the chunk
  let index = 0;
  const skip = () => {
    while (index < length && isSpace(string.charCodeAt(index))) index++;
  };
  const wrong = (message) => ({ read, written, error: new SyntaxError(message) });
  const last = (isStrict) => {
    const spare = have === 2 ? 4 : 2; // unused bits of the last character
    if (isStrict && (bits & ((1 << spare) - 1)) !== 0) return wrong("The last character of the base64 text has bits that mean nothing.");
    bits >>= spare;
    if (have === 3) bytes[written++] = bits >> 8;
    bytes[written++] = bits;
    return { read: length, written, error: null };
  };
  if (most === 0) return { read, written, error: null };
  for (;;) {
    skip();
    if (index === length) {
      if (have === 0) return { read: length, written, error: null };
      if (handling === "stop-before-partial") return { read, written, error: null };
      return handling === "strict" || have === 1 ? wrong("The base64 text ends too early.") : last(false);
    }
    const code = string.charCodeAt(index++);
    if (code === PAD) {
      if (have < 2) return wrong("There is a = in the wrong place of the base64 text.");
      skip();
      if (have === 2) {
        if (index === length && handling === "stop-before-partial") return { read, written, error: null };
        if (index === length || string.charCodeAt(index) !== PAD) return wrong("The base64 text misses a = at its end.");
        index++;
        skip();
      }
      return index < length ? wrong("The base64 text goes on after its end.") : last(handling === "strict");
    }
    const value = code < 128 ? values[code] : -1;
    if (value < 0) return wrong("The base64 text has a character that is not of its alphabet.");
    const room = most - written;
    if ((room === 1 && have === 2) || (room === 2 && have === 3)) return { read, written, error: null };
    bits = (bits << 6) | value;
    if (++have < 4) continue;
    bytes[written++] = bits >> 16;
    bytes[written++] = bits >> 8;
    bytes[written++] = bits;
    bits = have = 0;
    read = index;
    if (written === most) return { read, written, error: null };
  }
}

function isSpace(code) {
  return code === 32 || code === 9 || code === 10 || code === 12 || code === 13;
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-uint8array.frombase64 */
export function fromBase64(string, options) {
  requireText(string);
  const given = optionsOf(options);
  const alphabet = pickAlphabet(given);
  const handling = pick(given.lastChunkHandling, HANDLING, "lastChunkHandling");
  if (string.length === 0) return new Uint8Array();
  const bytes = new Uint8Array(Math.ceil(string.length / 4) * 3);
  const { written, error } = decode(string, alphabet, handling, bytes);
  if (error !== null) throw error;
  return bytes.slice(0, written);
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-uint8array.prototype.setfrombase64 */
export function setFromBase64(bytes, string, options) {
  requireText(string);
  const given = optionsOf(options);
  const alphabet = pickAlphabet(given);
  const handling = pick(given.lastChunkHandling, HANDLING, "lastChunkHandling");
  liveLength(bytes);
  const { read, written, error } = decode(string, alphabet, handling, bytes);
  if (error !== null) throw error; // the bytes before the error are written
  return { read, written };
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-fromhex: writes to `bytes`; returns { read, written, error }. */
function decodeHex(string, bytes) {
  const { length } = string;
  if (length % 2 !== 0) return { read: 0, written: 0, error: new SyntaxError("The hex text has an odd number of digits.") };
  let at = 0;
  for (; at < length && at / 2 < bytes.length; at += 2) {
    const high = digit(string.charCodeAt(at));
    const low = digit(string.charCodeAt(at + 1));
    if (high < 0 || low < 0) return { read: at, written: at / 2, error: new SyntaxError("The hex text has a character that is not a hex digit.") };
    bytes[at / 2] = high * 16 + low;
  }
  return { read: at, written: at / 2, error: null };
}

function digit(code) {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 && code < 128 ? lower - 87 : -1;
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-uint8array.fromhex */
export function fromHex(string) {
  requireText(string);
  const bytes = new Uint8Array(string.length >> 1);
  const { error } = decodeHex(string, bytes);
  if (error !== null) throw error;
  return bytes;
}

/** https://tc39.es/proposal-arraybuffer-base64/spec/#sec-uint8array.prototype.setfromhex */
export function setFromHex(bytes, string) {
  requireText(string);
  liveLength(bytes);
  const { read, written, error } = decodeHex(string, bytes);
  if (error !== null) throw error;
  return { read, written };
}
