// https://urlpattern.spec.whatwg.org/#urlpattern-class
import { defineInterface } from "../internal/platform.js";
import { toDictionary, toUSVString } from "../internal/webidl.js";
import { canonicalize, processInit, SPECIAL } from "./pattern_init.js";
import { compileComponent, DEFAULT, HOSTNAME, PATHNAME } from "./pattern_parts.js";
import { parseConstructorString } from "./pattern_tokens.js";
import { URL } from "./url.js";

const COMPONENTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const MEMBERS = ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username"];

/** https://urlpattern.spec.whatwg.org/#typedefdef-urlpatterninput */
function toInput(value, where) {
  if (value === undefined) return {};
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return toUSVString(value);
  const given = toDictionary(value, where);
  const init = {};
  for (const name of MEMBERS) {
    const component = given[name];
    if (component !== undefined) init[name] = toUSVString(component);
  }
  return init;
}

// The overloads of the constructor: (input, baseURL, options) and (input, options).
function toArguments(input, second, third, count) {
  const pattern = toInput(input, "URLPattern constructor");
  const hasBase = count > 2 || (second !== undefined && second !== null && typeof second !== "object");
  const base = hasBase ? toUSVString(second) : null;
  const ignoreCase = !!toDictionary(hasBase ? third : second, "URLPattern constructor").ignoreCase;
  return { pattern, base, ignoreCase };
}

/** https://urlpattern.spec.whatwg.org/#protocol-component-matches-a-special-scheme */
function matchesSpecial({ regexp }) {
  return [...SPECIAL.keys()].some((scheme) => regexp.test(scheme));
}

/** https://urlpattern.spec.whatwg.org/#hostname-pattern-is-an-ipv6-address */
function isIPv6(pattern) {
  return pattern.length > 1 && /^(?:\[|\{\[|\\\[)/.test(pattern);
}

/** https://urlpattern.spec.whatwg.org/#url-pattern-create */
function createComponents({ pattern, base, ignoreCase }) {
  let init = pattern;
  if (typeof pattern === "string") {
    init = parseConstructorString(pattern, (text) => matchesSpecial(compileComponent(text, canonicalize.protocol, DEFAULT)));
    if (base !== null) init.baseURL = base;
    else if (init.protocol === undefined) throw new TypeError(`URLPattern: '${pattern}' has no protocol and there is no base URL.`);
  } else if (base !== null) {
    throw new TypeError("URLPattern constructor: only a string can have a base URL.");
  }
  const given = processInit(init, true);
  for (const name of COMPONENTS) given[name] ??= "*";
  if (SPECIAL.has(given.protocol) && given.port === SPECIAL.get(given.protocol)) given.port = "";
  const compile = (name, encode = canonicalize[name], options = DEFAULT, caseless = false) => {
    return compileComponent(given[name], encode, options, caseless);
  };
  const protocol = compile("protocol");
  return {
    protocol,
    username: compile("username"),
    password: compile("password"),
    hostname: compile("hostname", isIPv6(given.hostname) ? canonicalize.ipv6 : canonicalize.hostname, HOSTNAME),
    port: compile("port"),
    pathname: matchesSpecial(protocol)
      ? compile("pathname", canonicalize.pathname, PATHNAME, ignoreCase)
      : compile("pathname", canonicalize.opaquePathname, DEFAULT, ignoreCase),
    search: compile("search", canonicalize.search, DEFAULT, ignoreCase),
    hash: compile("hash", canonicalize.hash, DEFAULT, ignoreCase),
  };
}

/** The components of the input to match, or null if it is not a URL. https://urlpattern.spec.whatwg.org/#url-pattern-match */
function componentsOf(input, base, where) {
  if (typeof input !== "string") {
    if (base !== undefined) throw new TypeError(`${where}: only a string can have a base URL.`);
    try {
      return processInit(input, false, Object.fromEntries(COMPONENTS.map((name) => [name, ""])));
    } catch {
      return null;
    }
  }
  const url = URL.parse(input, base);
  if (url === null) return null;
  const { protocol, username, password, hostname, port, pathname, search, hash } = url;
  const bare = { protocol: protocol.slice(0, -1), search: search.slice(1), hash: hash.slice(1) };
  return { username, password, hostname, port, pathname, ...bare };
}

/** https://urlpattern.spec.whatwg.org/#create-a-component-match-result */
function toResult({ names }, input, found) {
  const groups = {};
  names.forEach((name, index) => {
    Object.defineProperty(groups, name, { value: found[index + 1], writable: true, enumerable: true, configurable: true });
  });
  return { input, groups };
}

export class URLPattern {
  #components;

  /** https://urlpattern.spec.whatwg.org/#dom-urlpattern-urlpattern */
  constructor(input = undefined, baseURL = undefined, options = undefined) {
    this.#components = createComponents(toArguments(input, baseURL, options, arguments.length));
  }

  get protocol() {
    return this.#components.protocol.text;
  }

  get username() {
    return this.#components.username.text;
  }

  get password() {
    return this.#components.password.text;
  }

  get hostname() {
    return this.#components.hostname.text;
  }

  get port() {
    return this.#components.port.text;
  }

  get pathname() {
    return this.#components.pathname.text;
  }

  get search() {
    return this.#components.search.text;
  }

  get hash() {
    return this.#components.hash.text;
  }

  get hasRegExpGroups() {
    return COMPONENTS.some((name) => this.#components[name].hasRegExpGroups);
  }

  /** https://urlpattern.spec.whatwg.org/#dom-urlpattern-test */
  test(input = undefined, baseURL = undefined) {
    const components = this.#components;
    const base = baseURL === undefined ? undefined : toUSVString(baseURL);
    const url = componentsOf(toInput(input, "URLPattern.test"), base, "URLPattern.test");
    return url !== null && COMPONENTS.every((name) => components[name].regexp.test(url[name]));
  }

  /** https://urlpattern.spec.whatwg.org/#dom-urlpattern-exec */
  exec(input = undefined, baseURL = undefined) {
    const components = this.#components;
    const given = toInput(input, "URLPattern.exec");
    const base = baseURL === undefined ? undefined : toUSVString(baseURL);
    const url = componentsOf(given, base, "URLPattern.exec");
    if (url === null) return null;
    const result = { inputs: base === undefined ? [given] : [given, base] };
    for (const name of COMPONENTS) {
      const found = components[name].regexp.exec(url[name]);
      if (found === null) return null;
      result[name] = toResult(components[name], url[name], found);
    }
    return result;
  }
}

defineInterface(URLPattern);
