// https://fetch.spec.whatwg.org/#headers-class
//
// The guards "request" and "response" keep page scripts from forging headers of the browser. A worker is the server, so the only
// guard here is "immutable".
import { HeaderList, toHeaderName, toHeaderValue } from "./header_list.js";
import { definePairs } from "../internal/pair_iterator.js";
import { defineInterface } from "../internal/platform.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";
import { forEachProperty, requireArguments, toByteString, toSequence, wrongArgument } from "../internal/webidl.js";

const INTERNAL = Symbol("made by the platform");

/** (list, guard) -> Headers that share the list. Guard: "none" | "immutable". */
export let createHeaders;
export let isHeaders;
let listOf;

/** https://fetch.spec.whatwg.org/#concept-headers-fill: appends to a list. */
export function fillHeaders(list, init) {
  if (isHeaders(init) && init[Symbol.iterator] === Headers.prototype[Symbol.iterator]) {
    const { pairs, undone } = listOf(init);
    list.undone = undone;
    for (let i = 0; i < pairs.length; i += 2) list.append(pairs[i], pairs[i + 1]);
    return;
  }
  if (init === null || (typeof init !== "object" && typeof init !== "function")) {
    throw wrongArgument("Headers constructor", 0, "Headers or Sequence or object");
  }
  const method = init[Symbol.iterator];
  if (method === undefined || method === null) {
    forEachProperty(init, checkName, (key, value) => list.append(toHeaderName(key), toHeaderValue(value)));
  } else fillFromSequence(list, init);
}

const checkName = (key) => toByteString(key, "Headers");

function fillFromSequence(list, init) {
  for (const item of toSequence(init, "Headers")) {
    const pair = toSequence(item, "Headers");
    if (pair.length !== 2) throw new TypeError("To initialize a Headers object from a sequence, each inner sequence must have exactly two elements.");
    list.append(toHeaderName(pair[0]), toHeaderValue(pair[1]));
  }
}

export class Headers {
  #list;
  #guard = "none";

  constructor(init = undefined, token = undefined) {
    if (token === INTERNAL) {
      this.#list = init;
      return;
    }
    this.#list = new HeaderList();
    if (init !== undefined) fillHeaders(this.#list, init);
  }

  #requireMutable() {
    if (this.#guard === "immutable") {
      throw new TypeError("Can't modify immutable headers.");
    }
  }

  /** https://fetch.spec.whatwg.org/#dom-headers-append */
  append(name, value) {
    requireArguments(arguments.length, 2, "Headers.append");
    const list = this.#list;
    const key = toHeaderName(name);
    const text = toHeaderValue(value);
    this.#requireMutable();
    list.append(key, text);
  }

  /** https://fetch.spec.whatwg.org/#dom-headers-delete */
  delete(name) {
    requireArguments(arguments.length, 1, "Headers.delete");
    const list = this.#list;
    const key = toHeaderName(name);
    this.#requireMutable();
    list.delete(key);
  }

  /** https://fetch.spec.whatwg.org/#dom-headers-get */
  get(name) {
    requireArguments(arguments.length, 1, "Headers.get");
    return this.#list.get(toHeaderName(name));
  }

  /** https://fetch.spec.whatwg.org/#dom-headers-getsetcookie */
  getSetCookie() {
    return this.#list.getAll("set-cookie");
  }

  /** https://developers.cloudflare.com/workers/runtime-apis/headers/: older than getSetCookie(), and for Set-Cookie only. */
  getAll(name) {
    requireArguments(arguments.length, 1, "Headers.getAll");
    if (toHeaderName(name) !== "set-cookie") throw new TypeError('getAll() can only be used with the header name "Set-Cookie".');
    return this.#list.getAll("set-cookie");
  }

  /** https://fetch.spec.whatwg.org/#dom-headers-has */
  has(name) {
    requireArguments(arguments.length, 1, "Headers.has");
    return this.#list.has(toHeaderName(name));
  }

  /** https://fetch.spec.whatwg.org/#dom-headers-set */
  set(name, value) {
    requireArguments(arguments.length, 2, "Headers.set");
    const list = this.#list;
    const key = toHeaderName(name);
    const text = toHeaderValue(value);
    this.#requireMutable();
    list.set(key, text);
  }

  static {
    createHeaders = (list, guard) => {
      const headers = new Headers(list, INTERNAL);
      headers.#guard = guard;
      return headers;
    };
    isHeaders = (value) => typeof value === "object" && value !== null && #list in value;
    listOf = (headers) => headers.#list;
  }
}

let separatesCookies = true;
whenFlagsAreSet(() => {
  separatesCookies = isOn("http_headers_getsetcookie");
});

definePairs(Headers, "Headers", (headers) => listOf(headers).sortAndCombine(separatesCookies));
defineInterface(Headers, { name: "Headers", describe: describeHeaders, clone: (headers) => createHeaders(listOf(headers).copy(), "none") });

// Set-Cookie is the only name that may occur more than once.
function describeHeaders(headers) {
  const shown = Object.fromEntries(headers);
  const cookies = headers.getAll("set-cookie");
  return cookies.length > 1 ? { ...shown, "set-cookie": cookies } : shown;
}
