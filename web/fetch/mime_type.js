// https://mimesniff.spec.whatwg.org/#understanding-mime-types
import { isToken } from "./header_list.js";
import { HTTP_WHITESPACE, strip, stripEnd } from "../internal/text.js";

// https://mimesniff.spec.whatwg.org/#http-quoted-string-token-code-point
const QUOTABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** https://mimesniff.spec.whatwg.org/#mime-type: { type, subtype, parameters: Map }, with its essence. */
class MimeType {
  parameters = new Map();

  constructor(type, subtype) {
    this.type = type;
    this.subtype = subtype;
  }

  get essence() {
    return `${this.type}/${this.subtype}`;
  }
}

/**
 * https://fetch.spec.whatwg.org/#collect-an-http-quoted-string, from the opening quote at `start`:
 * { value, end }, without the quotes.
 */
function collectQuotedString(input, start) {
  let value = "";
  let at = start + 1;
  for (;;) {
    let end = at;
    while (end < input.length && input[end] !== '"' && input[end] !== "\\") end++;
    value += input.slice(at, end);
    if (end >= input.length) return { value, end };
    if (input[end] === '"') return { value, end: end + 1 };
    if (end + 1 >= input.length) return { value: `${value}\\`, end: end + 1 };
    value += input[end + 1];
    at = end + 2;
  }
}

function indexOfEither(input, first, second, start) {
  let at = start;
  while (at < input.length && input[at] !== first && input[at] !== second) at++;
  return at;
}

/** https://mimesniff.spec.whatwg.org/#parse-a-mime-type, step 11. */
function parseParameters(mime, input, start) {
  let at = start;
  while (at < input.length) {
    // Steps 11.1 to 11.4.
    at++;
    while (at < input.length && HTTP_WHITESPACE.includes(input[at])) at++;
    const nameEnd = indexOfEither(input, ";", "=", at);
    const name = input.slice(at, nameEnd).toLowerCase();
    at = nameEnd;
    // Steps 11.5 and 11.6.
    if (at >= input.length) return;
    if (input[at] === ";") continue;
    at++;
    if (at >= input.length) return;
    // Steps 11.7 to 11.9.
    let value;
    if (input[at] === '"') {
      ({ value, end: at } = collectQuotedString(input, at));
      while (at < input.length && input[at] !== ";") at++;
    } else {
      const end = indexOfEither(input, ";", ";", at);
      value = stripEnd(input.slice(at, end), HTTP_WHITESPACE);
      at = end;
      if (value === "") continue;
    }
    // Step 11.10.
    if (isToken(name) && QUOTABLE.test(value) && !mime.parameters.has(name)) mime.parameters.set(name, value);
  }
}

/** https://mimesniff.spec.whatwg.org/#parse-a-mime-type; null for failure. */
export function parseMimeType(text) {
  const input = strip(text, HTTP_WHITESPACE);
  const slash = input.indexOf("/");
  if (slash === -1 || !isToken(input.slice(0, slash))) return null;
  let end = input.indexOf(";", slash);
  if (end === -1) end = input.length;
  const subtype = stripEnd(input.slice(slash + 1, end), HTTP_WHITESPACE);
  if (!isToken(subtype)) return null;
  const mime = new MimeType(input.slice(0, slash).toLowerCase(), subtype.toLowerCase());
  parseParameters(mime, input, end);
  return mime;
}

/** https://mimesniff.spec.whatwg.org/#serialize-a-mime-type */
export function serializeMimeType(mime) {
  let text = mime.essence;
  for (const [name, value] of mime.parameters) {
    text += `;${name}=`;
    text += isToken(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
  }
  return text;
}

/** https://fetch.spec.whatwg.org/#header-value-get-decode-and-split: splits at commas outside quotes. */
function splitValues(value) {
  const values = [];
  let start = 0;
  let at = 0;
  while (at <= value.length) {
    if (at === value.length || value[at] === ",") {
      values.push(value.slice(start, at));
      start = ++at;
    } else at = value[at] === '"' ? collectQuotedString(value, at).end : at + 1;
  }
  return values;
}

/** https://fetch.spec.whatwg.org/#concept-header-extract-mime-type, of a combined Content-Type value; null for failure. */
export function extractMimeType(contentType) {
  if (contentType === null) return null;
  let charset = null;
  let essence = null;
  let mime = null;
  for (const value of splitValues(contentType)) {
    // Step 6.
    const next = parseMimeType(value);
    if (next === null || next.essence === "*/*") continue;
    mime = next;
    if (mime.essence !== essence) {
      charset = mime.parameters.get("charset") ?? null;
      essence = mime.essence;
    } else if (!mime.parameters.has("charset") && charset !== null) mime.parameters.set("charset", charset);
  }
  return mime;
}
