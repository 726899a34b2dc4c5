// https://urlpattern.spec.whatwg.org/#urlpattern-class: the work is done by urlpattern-polyfill.
import { URLPattern as Library } from "urlpattern-polyfill/urlpattern";
import { defineInterface } from "../internal/platform.js";
import { toDictionary, toUSVString } from "../internal/webidl.js";

const COMPONENTS = ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username"];

/** https://urlpattern.spec.whatwg.org/#typedefdef-urlpatterninput */
function toInput(value, where) {
  if (value === undefined) return {};
  if (value === null || typeof value !== "object") return toUSVString(value);
  const given = toDictionary(value, where);
  const init = {};
  for (const name of COMPONENTS) {
    const component = given[name];
    if (component !== undefined) init[name] = toUSVString(component);
  }
  return init;
}

function toOptions(value) {
  return { ignoreCase: !!toDictionary(value, "URLPattern constructor").ignoreCase };
}

// The two constructors: (input, baseURL, options) and (input, options).
function toArguments(input, second, third, count) {
  const pattern = toInput(input, "URLPattern constructor");
  const hasBase = count > 2 || (second !== undefined && second !== null && typeof second !== "object");
  if (!hasBase) return [pattern, toOptions(second)];
  const base = toUSVString(second);
  if (typeof pattern !== "string") throw new TypeError("URLPattern constructor: only a string can have a base URL.");
  return [pattern, base, toOptions(third)];
}

export class URLPattern {
  #pattern;

  /** https://urlpattern.spec.whatwg.org/#dom-urlpattern-urlpattern */
  constructor(input = undefined, baseURL = undefined, options = undefined) {
    this.#pattern = new Library(...toArguments(input, baseURL, options, arguments.length));
  }

  get protocol() {
    return this.#pattern.protocol;
  }

  get username() {
    return this.#pattern.username;
  }

  get password() {
    return this.#pattern.password;
  }

  get hostname() {
    return this.#pattern.hostname;
  }

  get port() {
    return this.#pattern.port;
  }

  get pathname() {
    return this.#pattern.pathname;
  }

  get search() {
    return this.#pattern.search;
  }

  get hash() {
    return this.#pattern.hash;
  }

  get hasRegExpGroups() {
    return this.#pattern.hasRegExpGroups;
  }

  /** https://urlpattern.spec.whatwg.org/#dom-urlpattern-test */
  test(input = undefined, baseURL = undefined) {
    const base = baseURL === undefined ? [] : [toUSVString(baseURL)];
    return this.#pattern.test(toInput(input, "URLPattern.test"), ...base);
  }

  /** https://urlpattern.spec.whatwg.org/#dom-urlpattern-exec */
  exec(input = undefined, baseURL = undefined) {
    const base = baseURL === undefined ? [] : [toUSVString(baseURL)];
    return this.#pattern.exec(toInput(input, "URLPattern.exec"), ...base);
  }
}

defineInterface(URLPattern);
