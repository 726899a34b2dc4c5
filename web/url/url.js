// https://url.spec.whatwg.org/#url-class
//
// The parser is ada, in C++. It returns the whole URL as one string and nine offsets of its parts. Reading a part is a substring;
// changing a part is a call that returns a new string and new offsets.
import { createLinkedParams, URLSearchParams } from "./search_params.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toUSVString } from "../internal/webidl.js";

// Filled by native.parseUrl and native.setUrlPart, in this order (see engine/src/native/url.cc).
const found = new Uint32Array(9);
const OMITTED = -1; // 0xFFFFFFFF as a signed number

// The numbers of the setters in engine/src/native/url.cc.
const PART = Object.freeze({
  protocol: 0, username: 1, password: 2, host: 3, hostname: 4, port: 5, pathname: 6, search: 7, hash: 8,
});

// Schemes with a tuple origin, for which the origin needs no second parse.
const TUPLE_ORIGIN = ["http:", "https:", "ws:", "wss:", "ftp:"];

/** The normalized URL, or undefined; for code that needs no URL object. https://url.spec.whatwg.org/#concept-url-parser */
export function parseHref(input, base = undefined) {
  const href = native.parseUrl(input, base, found);
  if (href !== undefined || !hasPunycode(input, base)) return href;
  return lazy("url/ascii_hosts.js").parseAgain(input, base, found);
}

const PUNYCODE = /xn--/i;

function hasPunycode(url, other) {
  return PUNYCODE.test(url) || (other !== undefined && PUNYCODE.test(other));
}

export class URL {
  #href;
  #protocolEnd = 0;
  #usernameEnd = 0;
  #hostStart = 0;
  #hostEnd = 0;
  #port = OMITTED;
  #pathnameStart = 0;
  #searchStart = OMITTED;
  #hashStart = OMITTED;
  #params = null; // created when searchParams is first read

  /** https://url.spec.whatwg.org/#dom-url-url */
  constructor(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL constructor", "USVString");
    const input = typeof url === "string" ? url : `${url}`;
    const href = parseHref(input, base === undefined ? undefined : `${base}`);
    if (href === undefined) throw Object.assign(new TypeError("Invalid URL string."), { code: "ERR_INVALID_URL", input });
    this.#take(href);
  }

  /** https://url.spec.whatwg.org/#dom-url-parse */
  static parse(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL.parse");
    const input = `${url}`;
    const from = base === undefined ? undefined : `${base}`;
    return canParse(input, from) ? new URL(input, from) : null;
  }

  /** https://url.spec.whatwg.org/#dom-url-canparse */
  static canParse(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL.canParse");
    return canParse(`${url}`, base === undefined ? undefined : `${base}`);
  }

  /** https://w3c.github.io/FileAPI/#dfn-createObjectURL */
  static createObjectURL(object) {
    requireArguments(arguments.length, 1, "URL.createObjectURL");
    return lazy("file/object_url.js").createObjectURL(object);
  }

  /** https://w3c.github.io/FileAPI/#dfn-revokeObjectURL */
  static revokeObjectURL(url) {
    requireArguments(arguments.length, 1, "URL.revokeObjectURL");
    lazy("file/object_url.js").revokeObjectURL(toUSVString(url));
  }

  #take(href) {
    this.#href = href;
    this.#protocolEnd = found[0] | 0;
    this.#usernameEnd = found[1] | 0;
    this.#hostStart = found[2] | 0;
    this.#hostEnd = found[3] | 0;
    this.#port = found[4] | 0;
    this.#pathnameStart = found[5] | 0;
    this.#searchStart = found[6] | 0;
    this.#hashStart = found[7] | 0;
  }

  #set(part, value) {
    const text = `${value}`;
    let href = native.setUrlPart(this.#href, part, text, found);
    const isHost = part === PART.host || part === PART.hostname;
    // A host that is refused leaves the URL as it was.
    if ((href === undefined || (isHost && href === this.#href)) && hasPunycode(this.#href, text)) {
      href = lazy("url/ascii_hosts.js").setAgain(this.#href, part, text, isHost, found) ?? href;
    }
    if (href !== undefined) this.#take(href);
  }

  get href() {
    return this.#href;
  }

  /** https://url.spec.whatwg.org/#dom-url-href */
  set href(value) {
    const input = `${value}`;
    const href = parseHref(input);
    if (href === undefined) {
      throw new TypeError("Failed to set the 'href' property on 'URL': the provided value is not of type 'valid URL string'.");
    }
    this.#take(href);
    this.#params?.update(this.search);
  }

  /** https://url.spec.whatwg.org/#dom-url-origin */
  get origin() {
    this.#href; // a brand check: the getters below are public
    const { protocol } = this;
    if (TUPLE_ORIGIN.includes(protocol)) return `${protocol}//${this.host}`;
    if (protocol !== "blob:") return "null";
    const inner = URL.parse(this.pathname);
    return inner !== null && (inner.protocol === "http:" || inner.protocol === "https:") ? inner.origin : "null";
  }

  get protocol() {
    return this.#href.slice(0, this.#protocolEnd);
  }

  set protocol(value) {
    this.#set(PART.protocol, value);
  }

  get username() {
    const start = this.#protocolEnd + 2;
    return start < this.#usernameEnd ? this.#href.slice(start, this.#usernameEnd) : "";
  }

  set username(value) {
    this.#set(PART.username, value);
  }

  get password() {
    return this.#hostStart > this.#usernameEnd ? this.#href.slice(this.#usernameEnd + 1, this.#hostStart) : "";
  }

  set password(value) {
    this.#set(PART.password, value);
  }

  // The host begins after the "@", if there is one.
  #nameStart() {
    const start = this.#hostStart;
    return this.#hostEnd > start && this.#href.charCodeAt(start) === 0x40 ? start + 1 : start;
  }

  get host() {
    const start = this.#nameStart();
    // An empty host may be followed by "/.", which is not part of it.
    return start === this.#hostEnd ? "" : this.#href.slice(start, this.#pathnameStart);
  }

  set host(value) {
    this.#set(PART.host, value);
  }

  get hostname() {
    return this.#href.slice(this.#nameStart(), this.#hostEnd);
  }

  set hostname(value) {
    this.#set(PART.hostname, value);
  }

  get port() {
    return this.#port === OMITTED ? "" : `${this.#port}`;
  }

  set port(value) {
    this.#set(PART.port, value);
  }

  get pathname() {
    if (this.#searchStart !== OMITTED) return this.#href.slice(this.#pathnameStart, this.#searchStart);
    if (this.#hashStart !== OMITTED) return this.#href.slice(this.#pathnameStart, this.#hashStart);
    return this.#href.slice(this.#pathnameStart);
  }

  set pathname(value) {
    this.#set(PART.pathname, value);
  }

  get search() {
    if (this.#searchStart === OMITTED) return "";
    const end = this.#hashStart === OMITTED ? this.#href.length : this.#hashStart;
    return end - this.#searchStart <= 1 ? "" : this.#href.slice(this.#searchStart, end);
  }

  /** https://url.spec.whatwg.org/#dom-url-search */
  set search(value) {
    this.#set(PART.search, value);
    this.#params?.update(this.search);
  }

  /** https://url.spec.whatwg.org/#dom-url-searchparams */
  get searchParams() {
    this.#params ??= createLinkedParams(this.search, (query) => this.#set(PART.search, query));
    return this.#params.params;
  }

  get hash() {
    if (this.#hashStart === OMITTED) return "";
    return this.#href.length - this.#hashStart <= 1 ? "" : this.#href.slice(this.#hashStart);
  }

  set hash(value) {
    this.#set(PART.hash, value);
  }

  toString() {
    return this.#href;
  }

  toJSON() {
    return this.#href;
  }
}

function canParse(input, base) {
  return native.canParseUrl(input, base) || (hasPunycode(input, base) && parseHref(input, base) !== undefined);
}

defineInterface(URL, {
  name: "URL",
  describe: (url) => ({
    href: url.href, origin: url.origin, protocol: url.protocol, username: url.username, password: url.password,
    host: url.host, hostname: url.hostname, port: url.port, pathname: url.pathname, search: url.search,
    searchParams: url.searchParams, hash: url.hash,
  }),
});

export { URLSearchParams };
