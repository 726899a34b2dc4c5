// https://url.spec.whatwg.org/#application/x-www-form-urlencoded
import { decodeTextKeepingMark, encodeText } from "../internal/text.js";

const PERCENT = 0x25;
const PLUS = 0x2b;
const SHORT = 1024; // in a longer string of nothing but matches, replaceAll() takes twenty times its memory

function hexValue(byte) {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** https://url.spec.whatwg.org/#percent-decode, with spaces for "+", in place. Returns the decoded part. */
function percentDecode(bytes) {
  let written = 0;
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i];
    if (byte === PERCENT && i + 2 < bytes.length) {
      const high = hexValue(bytes[i + 1]);
      const low = hexValue(bytes[i + 2]);
      if (high !== -1 && low !== -1) {
        byte = high * 16 + low;
        i += 2;
      }
    } else if (byte === PLUS) byte = 0x20;
    bytes[written++] = byte;
  }
  return bytes.subarray(0, written);
}

function decodeComponent(string) {
  if (!string.includes("%")) {
    if (!string.includes("+")) return string;
    if (string.length < SHORT) return string.replaceAll("+", " ");
  }
  return decodeTextKeepingMark(percentDecode(encodeText(string)));
}

/** https://url.spec.whatwg.org/#concept-urlencoded-parser: a flat list of names and values. */
export function parseFormUrlencoded(input) {
  const list = [];
  let start = 0;
  while (start < input.length) {
    let end = input.indexOf("&", start);
    if (end === -1) end = input.length;
    if (end > start) {
      const sequence = input.slice(start, end);
      const equals = sequence.indexOf("=");
      if (equals === -1) list.push(decodeComponent(sequence), "");
      else list.push(decodeComponent(sequence.slice(0, equals)), decodeComponent(sequence.slice(equals + 1)));
    }
    start = end + 1;
  }
  return list;
}

const ESCAPES = { "!": "%21", "'": "%27", "(": "%28", ")": "%29", "~": "%7E", "%20": "+" };
const PLAIN = /^[\w*.-]*$/;

// encodeURIComponent leaves some characters that this format encodes, and does not write "+" for a space.
function encodeComponent(string) {
  if (PLAIN.test(string)) return string;
  return encodeURIComponent(string).replace(/[!'()~]|%20/g, (match) => ESCAPES[match]);
}

/** https://url.spec.whatwg.org/#concept-urlencoded-serializer */
export function serializeFormUrlencoded(list) {
  let output = "";
  for (let i = 0; i < list.length; i += 2) {
    if (i > 0) output += "&";
    output += `${encodeComponent(list[i])}=${encodeComponent(list[i + 1])}`;
  }
  return output;
}
