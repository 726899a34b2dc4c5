// The older functions of node:url: parse, format and resolve, which are more lenient than the URL standard.
// https://nodejs.org/api/url.html#legacy-url-api
import { URL } from "../url/url.js";
import { codedError, invalidArgument, requireString } from "./errors.js";
import { parse as parseQuery, stringify as stringifyQuery } from "./querystring.js";
import { domainToASCII } from "./url_domains.js";
import { formatUrl } from "./url_format.js";

const FIELDS = ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"];
const SLASHED = new Set(["http", "https", "ftp", "gopher", "file", "ws", "wss"]);
const WITHOUT_HOST = new Set(["javascript"]);
const SIMPLE_PATH = /^(\/\/?(?!\/)[^?\s]*)(\?[^\s]*)?$/;
const SCHEME = /^[a-z0-9.+-]+:/i;
const AUTH_AND_HOST = /^\/\/[^@/]+@[^@/]+/;
const FORBIDDEN_IN_HOST = /[\0\t\n\r #%/:<>?@[\\\]^|]/;
const FORBIDDEN_IN_IPV6 = /[\0\t\n\r #%/<>?@\\^|]/;
const ESCAPED = /[\t\n\r "'<>\\^`{|}]/g;
const MOST_HOST = 255;

const isSlashed = (protocol) => SLASHED.has(`${protocol ?? ""}`.replace(/:$/, ""));
const isWithoutHost = (protocol) => WITHOUT_HOST.has(`${protocol ?? ""}`.replace(/:$/, ""));
const isIpv6 = (name) => name.startsWith("[") && name.endsWith("]");

/** The result of url.parse(). */
export function Url() {
  for (const name of FIELDS) this[name] = null;
}

function invalidUrl(input, reason = "Invalid URL") {
  return Object.assign(codedError(TypeError, "ERR_INVALID_URL", reason), { input });
}

const isBlank = (unit) => unit <= 32 || unit === 0xa0 || unit === 0xfeff;

function trimmed(text) {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

// Backslashes before `?` and `#` are slashes.
function withSlashes(text) {
  const end = text.search(/[?#]/);
  return end === -1 ? text.replaceAll("\\", "/") : text.slice(0, end).replaceAll("\\", "/") + text.slice(end);
}

// Takes { auth, host } from the start of the text; returns the rest of it.
function takeAuthority(url, text, address) {
  const end = text.search(/[#/?]/);
  let authority = (end === -1 ? text : text.slice(0, end)).replace(/[\t\n\r]/g, "");
  let rest = end === -1 ? "" : text.slice(end);
  const at = authority.lastIndexOf("@");
  if (at !== -1) {
    url.auth = decodeURIComponent(authority.slice(0, at));
    authority = authority.slice(at + 1);
  }
  const stop = authority.search(/[ "%';<>\\^`{|}]/);
  if (stop !== -1) {
    rest = authority.slice(stop) + rest;
    authority = authority.slice(0, stop);
  }
  const port = /:[0-9]*$/.exec(authority);
  let name = authority;
  if (port !== null) {
    if (port[0] !== ":") url.port = port[0].slice(1);
    name = authority.slice(0, -port[0].length);
  }
  if (!isIpv6(name)) {
    // What follows a colon is no port: it becomes a part of the path.
    const colon = name.search(/[/\\#?:]/);
    if (colon !== -1) {
      rest = `/${name.slice(colon)}${rest}`;
      name = name.slice(0, colon);
    }
  }
  url.hostname = name.length > MOST_HOST ? "" : name.toLowerCase();
  if (url.hostname !== "") checkHost(url, address);
  url.host = `${url.hostname}${url.port === null ? "" : `:${url.port}`}`;
  if (isIpv6(url.hostname)) {
    url.hostname = url.hostname.slice(1, -1);
    if (!rest.startsWith("/")) rest = `/${rest}`;
  }
  return rest;
}

function checkHost(url, address) {
  if (isIpv6(url.hostname)) {
    if (FORBIDDEN_IN_IPV6.test(url.hostname)) throw invalidUrl(address);
    return;
  }
  // Names of the internet in the form that is sent; others (with `_`, too long a label) stay as they are.
  if (/[^\0-\x7f]/.test(url.hostname)) {
    const ascii = domainToASCII(url.hostname);
    if (ascii === "") throw invalidUrl(address);
    url.hostname = ascii;
  }
  if (FORBIDDEN_IN_HOST.test(url.hostname)) throw invalidUrl(address);
}

/** https://nodejs.org/api/url.html#urlparseurlstring-parsequerystring-slashesdenotehost */
export function parse(address, withQuery = false, slashesDenoteHost = false) {
  if (address instanceof Url) return address;
  requireString(address, "url");
  const url = new Url();
  let rest = withSlashes(trimmed(address));
  if (!slashesDenoteHost && !/[#@]/.test(rest)) {
    const simple = SIMPLE_PATH.exec(rest);
    if (simple !== null) {
      Object.assign(url, { path: rest, href: rest, pathname: simple[1] });
      if (simple[2] !== undefined) url.search = simple[2];
      if (withQuery) url.query = parseQuery(url.search?.slice(1) ?? "");
      else if (url.search !== null) url.query = url.search.slice(1);
      return url;
    }
  }
  const scheme = SCHEME.exec(rest)?.[0];
  if (scheme !== undefined) {
    url.protocol = scheme.toLowerCase();
    rest = rest.slice(scheme.length);
  }
  const mayHaveHost = !isWithoutHost(url.protocol);
  const hasSlashes = (slashesDenoteHost || scheme !== undefined || AUTH_AND_HOST.test(rest)) && rest.startsWith("//");
  if (hasSlashes && mayHaveHost) {
    rest = rest.slice(2);
    url.slashes = true;
  }
  if (mayHaveHost && (hasSlashes || (scheme !== undefined && !isSlashed(url.protocol)))) rest = takeAuthority(url, rest, address);
  if (mayHaveHost) rest = rest.replace(ESCAPED, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  const hash = rest.indexOf("#");
  if (hash !== -1) [url.hash, rest] = [rest.slice(hash), rest.slice(0, hash)];
  const question = rest.indexOf("?");
  if (question !== -1) {
    [url.search, rest] = [rest.slice(question), rest.slice(0, question)];
    url.query = withQuery ? parseQuery(url.search.slice(1)) : url.search.slice(1);
  } else if (withQuery) {
    url.query = { __proto__: null };
  }
  if (rest !== "") url.pathname = rest;
  if (isSlashed(url.protocol) && url.hostname && !url.pathname) url.pathname = "/";
  if (url.pathname || url.search) url.path = `${url.pathname ?? ""}${url.search ?? ""}`;
  url.href = url.format();
  return url;
}

function formatFields(url) {
  const auth = url.auth ? `${encodeURIComponent(url.auth).replace(/%3A/gi, ":")}@` : "";
  let protocol = url.protocol || "";
  if (protocol !== "" && !protocol.endsWith(":")) protocol += ":";
  let host = "";
  if (url.host) {
    host = auth + url.host;
  } else if (url.hostname) {
    const name = url.hostname.includes(":") && !isIpv6(url.hostname) ? `[${url.hostname}]` : url.hostname;
    host = `${auth}${name}${url.port ? `:${url.port}` : ""}`;
  }
  const query = url.query !== null && typeof url.query === "object" ? stringifyQuery(url.query) : "";
  let search = url.search || (query === "" ? "" : `?${query}`);
  let pathname = (url.pathname || "").replace(/[?#]/g, encodeURIComponent);
  if (url.slashes || isSlashed(protocol)) {
    if (url.slashes || host) {
      if (pathname !== "" && !pathname.startsWith("/")) pathname = `/${pathname}`;
      host = `//${host}`;
    } else if (protocol.startsWith("file")) {
      host = "//";
    }
  }
  let hash = url.hash || "";
  if (hash !== "" && !hash.startsWith("#")) hash = `#${hash}`;
  if (search !== "" && !search.startsWith("?")) search = `?${search}`;
  return `${protocol}${host}${pathname}${search.replaceAll("#", "%23")}${hash}`;
}

/** https://nodejs.org/api/url.html#urlformaturl-options and https://nodejs.org/api/url.html#urlformaturlobject */
export function format(address, options = undefined) {
  if (typeof address === "string") return parse(address).format();
  if (typeof address !== "object" || address === null) throw invalidArgument("urlObject", "one of type object or string", address);
  return address instanceof URL ? formatUrl(address, options) : formatFields(address);
}

// --- resolve: a reference relative to a base, as browsers did it before the URL standard ---

function finish(url, withPath = true) {
  if (withPath && (url.pathname !== null || url.search !== null)) url.path = `${url.pathname ?? ""}${url.search ?? ""}`;
  url.href = url.format();
  return url;
}

function take(url, from, names) {
  for (const name of names) url[name] = from[name];
}

// The reference has another scheme than the base.
function ofOtherScheme(result, reference) {
  if (!isSlashed(reference.protocol)) {
    take(result, reference, Object.keys(reference));
    result.href = result.format();
    return result;
  }
  result.protocol = reference.protocol;
  result.pathname = reference.pathname;
  let host = reference.host || "";
  if (!reference.host && !/^file:?$/.test(reference.protocol)) {
    // The first name of the path is the host: `http:/host/path`.
    const names = (reference.pathname || "").split("/");
    while (names.length > 0 && host === "") host = names.shift();
    if (names[0] !== "") names.unshift("");
    if (names.length < 2) names.unshift("");
    result.pathname = names.join("/");
  }
  take(result, reference, ["search", "query", "auth", "port"]);
  result.host = host;
  result.hostname = reference.hostname || host;
  result.slashes ||= reference.slashes;
  return finish(result, result.pathname || result.search);
}

// With a scheme that is not of the web, the host is the first name of the path.
function takeHostFrom(result, names) {
  result.hostname = result.host = names.length > 0 ? names.shift() : "";
  const at = result.host ? result.host.indexOf("@") : -1;
  if (at > 0) {
    result.auth = result.host.slice(0, at);
    result.host = result.hostname = result.host.slice(at + 1);
  }
}

function hostIntoPath(host, names) {
  if (!host) return;
  if (names[0] === "") names[0] = host;
  else names.unshift(host);
}

// Removes `.` and `..`; returns how many `..` are left over.
function removeDots(names) {
  let up = 0;
  for (let i = names.length - 1; i >= 0; i--) {
    if (names[i] === ".") {
      names.splice(i, 1);
    } else if (names[i] === "..") {
      names.splice(i, 1);
      up++;
    } else if (up > 0) {
      names.splice(i, 1);
      up--;
    }
  }
  return up;
}

function resolveFrom(base, reference) {
  const result = Object.assign(new Url(), base);
  result.hash = reference.hash;
  if (reference.href === "") return finish(result, false);
  if (reference.slashes && !reference.protocol) {
    take(result, reference, Object.keys(reference).filter((name) => name !== "protocol"));
    if (isSlashed(result.protocol) && result.hostname && !result.pathname) result.path = result.pathname = "/";
    return finish(result, false);
  }
  if (reference.protocol && reference.protocol !== result.protocol) return ofOtherScheme(result, reference);

  const isAbsoluteReference = Boolean(reference.host || reference.pathname?.startsWith("/"));
  let mustBeAbsolute = isAbsoluteReference || Boolean(result.pathname?.startsWith("/")) || Boolean(result.host && reference.pathname);
  const dropsDots = mustBeAbsolute;
  let names = result.pathname ? result.pathname.split("/") : [];
  const added = reference.pathname ? reference.pathname.split("/") : [];
  const hostIsInPath = Boolean(result.protocol) && !isSlashed(result.protocol);
  let referenceHost = reference.host;
  let referenceName = reference.hostname;
  if (hostIsInPath) {
    hostIntoPath(result.host, names);
    Object.assign(result, { hostname: "", port: null, host: "" });
    if (reference.protocol) {
      result.auth = null;
      hostIntoPath(referenceHost, added);
      referenceHost = referenceName = null;
    }
    mustBeAbsolute &&= added[0] === "" || names[0] === "";
  }
  if (isAbsoluteReference) {
    if (referenceHost || referenceHost === "") {
      if (result.host !== referenceHost) result.auth = null;
      result.host = referenceHost;
      result.port = reference.port;
    }
    if (referenceName || referenceName === "") {
      if (result.hostname !== referenceName) result.auth = null;
      result.hostname = referenceName;
    }
    take(result, reference, ["search", "query"]);
    names = added;
  } else if (added.length > 0) {
    names.pop();
    names = [...names, ...added];
    take(result, reference, ["search", "query"]);
  } else if (reference.search !== null && reference.search !== undefined) {
    if (hostIsInPath) takeHostFrom(result, names);
    take(result, reference, ["search", "query"]);
    return finish(result);
  }
  if (names.length === 0) {
    result.pathname = null;
    result.path = result.search ? `/${result.search}` : null;
    return finish(result, false);
  }
  const last = names.at(-1);
  const isFolder = ((result.host || referenceHost || names.length > 1) && (last === "." || last === "..")) || last === "";
  let up = removeDots(names);
  if (!mustBeAbsolute && !dropsDots) while (up-- > 0) names.unshift("..");
  if (mustBeAbsolute && names[0] !== "" && !names[0]?.startsWith("/")) names.unshift("");
  if (isFolder && !names.join("/").endsWith("/")) names.push("");
  const isAbsolute = names[0] === "" || Boolean(names[0]?.startsWith("/"));
  if (hostIsInPath) takeHostFrom(result, isAbsolute ? [] : names);
  mustBeAbsolute ||= Boolean(result.host && names.length > 0);
  if (mustBeAbsolute && !isAbsolute) names.unshift("");
  result.pathname = names.length === 0 ? null : names.join("/");
  if (names.length === 0) result.path = null;
  result.auth = reference.auth || result.auth;
  result.slashes ||= reference.slashes;
  return finish(result);
}

/** https://nodejs.org/api/url.html#urlresolvefrom-to */
export function resolve(from, to) {
  return parse(from, false, true).resolve(to);
}

export function resolveObject(from, to) {
  return from ? parse(from, false, true).resolveObject(to) : to;
}

Object.assign(Url.prototype, {
  parse(address, withQuery, slashesDenoteHost) {
    return Object.assign(this, parse(address, withQuery, slashesDenoteHost));
  },
  format() {
    return formatFields(this);
  },
  resolve(to) {
    return this.resolveObject(parse(to, false, true)).format();
  },
  resolveObject(to) {
    return resolveFrom(this, typeof to === "string" ? parse(to, false, true) : to);
  },
  parseHost() {
    const port = /:[0-9]*$/.exec(this.host);
    if (port !== null && port[0] !== ":") this.port = port[0].slice(1);
    const name = port === null ? this.host : this.host.slice(0, -port[0].length);
    if (name) this.hostname = name;
  },
});
