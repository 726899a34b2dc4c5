// A header list: lower-case names and values in one flat array. https://fetch.spec.whatwg.org/#concept-header-list
//
// The headers of an incoming request start as the text that the client sent. A single `get` searches that text, which is faster
// than parsing it. Anything else parses it once.
import { requireHeaderLength } from "../internal/webidl.js";

// Headers of the connection, not of the request: the front handles them and the worker does not see them.
// https://www.rfc-editor.org/rfc/rfc9110#name-connection. Upgrade is visible, because workers that serve WebSockets check it.
const HOP_BY_HOP = [
  "connection", "keep-alive", "proxy-connection", "te", "trailer",
  "cf-atoll-tls", "cf-atoll-place", // set by the front, for request.cf,
  "cf-atoll-cf", // and by another worker
];

// 1 for the characters of a token, 2 for those among them that have a lower case. https://www.rfc-editor.org/rfc/rfc9110#name-tokens
const TOKEN = new Uint8Array(128);
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") TOKEN[char.charCodeAt(0)] = 1;
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZ") TOKEN[char.charCodeAt(0)] = 2;

/** https://fetch.spec.whatwg.org/#header-name. Methods use the same characters. */
export function isToken(string) {
  const { length } = string;
  for (let i = 0; i < length; i++) {
    const code = string.charCodeAt(i);
    if (code > 127 || TOKEN[code] === 0) return false;
  }
  return length > 0;
}

// Shortens long values for error messages.
function quote(text) {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/** Converts a header name to its stored form. Throws for an invalid name, as Web IDL and fetch define. */
export function toHeaderName(value) {
  const name = requireHeaderLength(typeof value === "string" ? value : `${value}`);
  const { length } = name;
  let isLower = true;
  let isValid = length > 0;
  for (let i = 0; i < length; i++) {
    const code = name.charCodeAt(i);
    const kind = code > 127 ? 0 : TOKEN[code];
    if (kind === 2) isLower = false;
    else if (kind === 0) isValid = false;
  }
  if (!isValid) throw new TypeError("Invalid header name.");
  return isLower ? name : name.toLowerCase();
}

function isSpace(code) {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}

/** https://fetch.spec.whatwg.org/#concept-header-value-normalize */
function normalizeValue(value) {
  let start = 0;
  let end = value.length;
  while (start < end && isSpace(value.charCodeAt(start))) start++;
  while (end > start && isSpace(value.charCodeAt(end - 1))) end--;
  return start === 0 && end === value.length ? value : value.slice(start, end);
}

/** Converts a header value to its stored form, which never contains CR, LF or NUL. */
export function toHeaderValue(value) {
  const text = normalizeValue(requireHeaderLength(typeof value === "string" ? value : `${value}`));
  const { length } = text;
  // A loop: most values are short, and two regular expressions took longer than the rest of the function.
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0xff) {
      throw new TypeError(`Headers: the value ${quote(text)} has a character above U+00FF, which HTTP cannot carry.`);
    }
    if (code === 0 || code === 0x0a || code === 0x0d) {
      throw new TypeError("Invalid header value.");
    }
  }
  return text;
}

export class HeaderList {
  #pairs; // [name, value, name, value, …], or null while the text is not parsed
  #raw; // "…\nName: value\r\n…", or null
  #lowered = null; // the text in lower case; in Latin-1 that never changes the length
  #start; // where the headers begin in the text
  #sorted = null; // the result of sortAndCombine(), until the next change
  undone = ""; // of a fetched response: the content coding that reading the body undoes

  constructor(pairs = []) {
    this.#pairs = pairs;
    this.#raw = null;
    this.#start = 0;
  }

  /** The list of an incoming request: lines of a text from `start`, where the character before `start` is a line feed. */
  static fromText(text, start) {
    const list = new HeaderList(null);
    list.#raw = text;
    list.#start = start;
    return list;
  }

  /** The flat array, read-only. */
  get pairs() {
    return this.#pairs ?? this.#takeApart();
  }

  #takeApart() {
    const raw = this.#raw;
    const lowered = (this.#lowered ??= raw.toLowerCase());
    const pairs = [];
    let at = this.#start;
    while (at < raw.length) {
      let end = raw.indexOf("\r\n", at);
      if (end === -1) end = raw.length;
      const colon = raw.indexOf(":", at);
      if (colon !== -1 && colon < end) {
        const name = lowered.slice(at, colon);
        if (!HOP_BY_HOP.includes(name)) pairs.push(name, normalizeValue(raw.slice(colon + 1, end)));
      }
      at = end + 2;
    }
    this.#raw = this.#lowered = null;
    this.#pairs = pairs;
    return pairs;
  }

  /** https://fetch.spec.whatwg.org/#concept-header-list-get */
  get(name) {
    if (this.#pairs === null) return this.#search(name);
    const pairs = this.#pairs;
    let found = null;
    for (let i = 0; i < pairs.length; i += 2) {
      if (pairs[i] === name) found = found === null ? pairs[i + 1] : `${found}, ${pairs[i + 1]}`;
    }
    return found;
  }

  #search(name) {
    if (HOP_BY_HOP.includes(name)) return null;
    const raw = this.#raw;
    const lowered = (this.#lowered ??= raw.toLowerCase());
    const line = `\n${name}:`;
    let found = null;
    let at = lowered.indexOf(line, this.#start - 1);
    while (at !== -1) {
      const from = at + line.length;
      let end = raw.indexOf("\r\n", from);
      if (end === -1) end = raw.length;
      const value = normalizeValue(raw.slice(from, end));
      found = found === null ? value : `${found}, ${value}`;
      at = lowered.indexOf(line, end);
    }
    return found;
  }

  has(name) {
    return this.get(name) !== null;
  }

  /** https://fetch.spec.whatwg.org/#concept-header-list-append */
  append(name, value) {
    this.pairs.push(name, value);
    this.#sorted = null;
  }

  /** https://fetch.spec.whatwg.org/#concept-header-list-set */
  set(name, value) {
    const { pairs } = this;
    this.#sorted = null;
    for (let i = 0; i < pairs.length; i += 2) {
      if (pairs[i] !== name) continue;
      pairs[i + 1] = value;
      this.#removeFrom(name, i + 2);
      return;
    }
    pairs.push(name, value);
  }

  /** https://fetch.spec.whatwg.org/#concept-header-list-delete */
  delete(name) {
    this.#sorted = null;
    this.#removeFrom(name, 0);
  }

  #removeFrom(name, start) {
    const { pairs } = this;
    let kept = start;
    for (let i = start; i < pairs.length; i += 2) {
      if (pairs[i] === name) continue;
      pairs[kept++] = pairs[i];
      pairs[kept++] = pairs[i + 1];
    }
    pairs.length = kept;
  }

  getAll(name) {
    const { pairs } = this;
    const values = [];
    for (let i = 0; i < pairs.length; i += 2) if (pairs[i] === name) values.push(pairs[i + 1]);
    return values;
  }

  copy() {
    const copy = new HeaderList(this.pairs.slice());
    copy.undone = this.undone;
    return copy;
  }

  /** https://fetch.spec.whatwg.org/#concept-header-list-sort-and-combine, as a flat array. */
  sortAndCombine(separatesCookies = true) {
    if (this.#sorted !== null) return this.#sorted;
    const byName = new Map();
    const { pairs } = this;
    for (let i = 0; i < pairs.length; i += 2) {
      const values = byName.get(pairs[i]);
      if (values === undefined) byName.set(pairs[i], [pairs[i + 1]]);
      else values.push(pairs[i + 1]);
    }
    const sorted = [];
    for (const name of [...byName.keys()].sort()) {
      const values = byName.get(name);
      // A cookie's value may contain a comma, so cookies are never combined.
      if (name === "set-cookie" && separatesCookies) for (const value of values) sorted.push(name, value);
      else sorted.push(name, values.length === 1 ? values[0] : values.join(", "));
    }
    return (this.#sorted = sorted);
  }
}
