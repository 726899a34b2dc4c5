// https://nodejs.org/api/querystring.html
import { decodeTextKeepingMark, encodeText } from "../internal/text.js";
import { codedError } from "./errors.js";

/** Percent-encodes everything but letters, digits and `-_.!~*'()`. A lone surrogate is an error. */
export function escape(text) {
  const string = typeof text === "object" ? String(text) : `${text}`;
  return encodeURIComponent(string.isWellFormed() ? string : paired(string));
}

// As in Node, half of a surrogate pair takes its other half from whatever follows.
function paired(text) {
  let result = "";
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdfff) {
      result += text[i];
      continue;
    }
    if (++i >= text.length) throw codedError(URIError, "ERR_INVALID_URI", "URI malformed");
    result += String.fromCodePoint(0x10000 + (((unit & 0x3ff) << 10) | (text.charCodeAt(i) & 0x3ff)));
  }
  return result;
}

/** Percent-decodes to bytes. Invalid percent-encodings are kept. */
export function unescapeBuffer(text) {
  const bytes = encodeText(`${text}`);
  const result = new Uint8Array(bytes.length);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const digits = bytes[i] === 37 ? String.fromCharCode(bytes[i + 1] ?? 0, bytes[i + 2] ?? 0) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(digits)) {
      result[length++] = parseInt(digits, 16);
      i += 2;
    } else {
      result[length++] = bytes[i];
    }
  }
  return result.subarray(0, length);
}

export function unescape(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return decodeTextKeepingMark(unescapeBuffer(text));
  }
}

function valueText(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isFinite(value) ? `${value}` : "";
  return typeof value === "bigint" || typeof value === "boolean" ? `${value}` : "";
}

export function stringify(object, separator = "&", equals = "=", options = {}) {
  if (typeof object !== "object" || object === null) return "";
  const encode = options?.encodeURIComponent ?? qs.escape;
  const pairs = [];
  for (const key of Object.keys(object)) {
    const values = Array.isArray(object[key]) ? object[key] : [object[key]];
    for (const value of values) pairs.push(`${encode(key)}${equals || "="}${encode(valueText(value))}`);
  }
  return pairs.join(separator || "&");
}

export function parse(text, separator = "&", equals = "=", options = {}) {
  const result = { __proto__: null };
  if (typeof text !== "string" || text === "") return result;
  const decode = options?.decodeURIComponent ?? qs.unescape;
  const most = typeof options?.maxKeys === "number" ? options.maxKeys : 1000;
  const safely = (part) => {
    const plain = part.replaceAll("+", " ");
    try {
      return decode(plain);
    } catch {
      return unescape(plain);
    }
  };
  let pairs = text.split(separator || "&").filter((pair) => pair !== "");
  if (most > 0) pairs = pairs.slice(0, most);
  for (const pair of pairs) {
    const at = pair.indexOf(equals || "=");
    const key = safely(at === -1 ? pair : pair.slice(0, at));
    const value = at === -1 ? "" : safely(pair.slice(at + (equals || "=").length));
    if (!(key in result)) result[key] = value;
    else if (Array.isArray(result[key])) result[key].push(value);
    else result[key] = [result[key], value];
  }
  return result;
}

export { parse as decode, stringify as encode };

// `querystring.escape` and `.unescape` may be replaced by the program.
const qs = { decode: parse, encode: stringify, escape, parse, stringify, unescape, unescapeBuffer };

export default qs;
