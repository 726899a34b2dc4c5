// https://url.spec.whatwg.org/#interface-urlsearchparams
import { parseFormUrlencoded, serializeFormUrlencoded } from "./form_urlencoded.js";
import { definePairs } from "../internal/pair_iterator.js";
import { defineInterface } from "../internal/platform.js";
import { forEachProperty, requireArguments, toSequence, toUSVString } from "../internal/webidl.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";

let takesValues = true; // the second argument of delete() and has()
whenFlagsAreSet(() => {
  takesValues = isOn("urlsearchparams_delete_has_value_arg");
});

/** https://url.spec.whatwg.org/#dom-url-searchparams: { params, update(query) } for a URL that follows changes. */
export let createLinkedParams;
export let isURLSearchParams;

let pairsOf;

function withoutMark(query) {
  return query.startsWith("?") ? query.slice(1) : query;
}

/** https://url.spec.whatwg.org/#urlsearchparams-initialize, for a sequence. */
function pairsOfSequence(value) {
  const pairs = [];
  for (const item of toSequence(value, "URLSearchParams constructor")) {
    const pair = toSequence(item, "URLSearchParams constructor");
    if (pair.length !== 2) throw new TypeError("URLSearchParams constructor: a pair does not have exactly two items.");
    pairs.push(toUSVString(pair[0]), toUSVString(pair[1]));
  }
  return pairs;
}

/** https://url.spec.whatwg.org/#urlsearchparams-initialize, for a record. */
function pairsOfRecord(value) {
  const record = new Map(); // conversion may make names equal: the last value wins, at the position of the first
  // Symbols are left out, as at Cloudflare.
  const check = (key) => typeof key === "symbol" || toUSVString(key);
  forEachProperty(value, check, (key, item) => typeof key === "symbol" || record.set(toUSVString(key), toUSVString(item)));
  return [...record].flat();
}

export class URLSearchParams {
  #list;
  #changed = null; // (query) => void, of the URL that owns the object

  constructor(init = "") {
    if (typeof init === "string" || (typeof init !== "object" && typeof init !== "function") || init === null) {
      this.#list = parseFormUrlencoded(withoutMark(toUSVString(init)));
    } else if (#list in init && init[Symbol.iterator] === URLSearchParams.prototype[Symbol.iterator]) {
      this.#list = init.#list.slice();
    } else {
      const method = init[Symbol.iterator];
      this.#list = method === undefined || method === null ? pairsOfRecord(init) : pairsOfSequence(init);
    }
  }

  /** https://url.spec.whatwg.org/#concept-urlsearchparams-update */
  #update() {
    this.#changed?.(serializeFormUrlencoded(this.#list));
  }

  get size() {
    return this.#list.length / 2;
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-append */
  append(name, value) {
    requireArguments(arguments.length, 2, "URLSearchParams.append");
    this.#list.push(toUSVString(name), toUSVString(value));
    this.#update();
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-delete */
  delete(name, value = undefined) {
    requireArguments(arguments.length, 1, "URLSearchParams.delete");
    const key = toUSVString(name);
    const only = value === undefined || !takesValues ? undefined : toUSVString(value);
    this.#keep((other, its) => other !== key || (only !== undefined && its !== only));
    this.#update();
  }

  #keep(isKept) {
    const list = this.#list;
    let kept = 0;
    for (let i = 0; i < list.length; i += 2) {
      if (!isKept(list[i], list[i + 1])) continue;
      list[kept++] = list[i];
      list[kept++] = list[i + 1];
    }
    list.length = kept;
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-get */
  get(name) {
    requireArguments(arguments.length, 1, "URLSearchParams.get");
    const key = toUSVString(name);
    const list = this.#list;
    for (let i = 0; i < list.length; i += 2) if (list[i] === key) return list[i + 1];
    return null;
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-getall */
  getAll(name) {
    requireArguments(arguments.length, 1, "URLSearchParams.getAll");
    const key = toUSVString(name);
    const values = [];
    for (let i = 0; i < this.#list.length; i += 2) if (this.#list[i] === key) values.push(this.#list[i + 1]);
    return values;
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-has */
  has(name, value = undefined) {
    requireArguments(arguments.length, 1, "URLSearchParams.has");
    const key = toUSVString(name);
    const only = value === undefined || !takesValues ? undefined : toUSVString(value);
    const list = this.#list;
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === key && (only === undefined || list[i + 1] === only)) return true;
    }
    return false;
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-set */
  set(name, value) {
    requireArguments(arguments.length, 2, "URLSearchParams.set");
    const key = toUSVString(name);
    const text = toUSVString(value);
    let isFirst = true;
    const list = this.#list;
    for (let i = 0; i < list.length && isFirst; i += 2) {
      if (list[i] !== key) continue;
      list[i + 1] = text;
      isFirst = false;
    }
    if (isFirst) list.push(key, text);
    else {
      let seen = false;
      this.#keep((other) => other !== key || (!seen && (seen = true)));
    }
    this.#update();
  }

  /** https://url.spec.whatwg.org/#dom-urlsearchparams-sort: by code units, as < compares. */
  sort() {
    const list = this.#list;
    const pairs = [];
    for (let i = 0; i < list.length; i += 2) pairs.push([list[i], list[i + 1]]);
    pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    for (let i = 0; i < pairs.length; i++) [list[2 * i], list[2 * i + 1]] = pairs[i];
    this.#update();
  }

  toString() {
    return serializeFormUrlencoded(this.#list);
  }

  static {
    pairsOf = (params) => params.#list;

    isURLSearchParams = (value) => typeof value === "object" && value !== null && #list in value;

    createLinkedParams = (query, changed) => {
      const params = new URLSearchParams(query);
      params.#changed = changed;
      return {
        params,
        update(next) {
          params.#list = parseFormUrlencoded(withoutMark(next));
        },
      };
    };
  }
}

definePairs(URLSearchParams, "URLSearchParams", pairsOf);
defineInterface(URLSearchParams, { name: "URLSearchParams", describe: (params) => [...params] });
