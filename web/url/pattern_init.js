// Converts components of a pattern or an input to the canonical form of a URL.
// https://urlpattern.spec.whatwg.org/#canon-encoding-callbacks
import { URL } from "./url.js";
import { escapePattern } from "./pattern_parts.js";

/** Scheme -> its default port. https://url.spec.whatwg.org/#special-scheme */
export const SPECIAL = new Map([["ftp", "21"], ["file", ""], ["http", "80"], ["https", "443"], ["ws", "80"], ["wss", "443"]]);

const DUMMY_HOST = "dummy-9f2c1b7e.invalid";
const dummyURL = () => new URL(`https://${DUMMY_HOST}/`);
const ignored = /[\t\n\r]/g; // characters that a URL parser removes everywhere

function invalid(component, value) {
  return new TypeError(`URLPattern: '${value}' is not a valid ${component} of a URL.`);
}

/** Each function takes a non-empty text. */
export const canonicalize = {
  protocol(value) {
    const url = URL.parse(`${value}://${DUMMY_HOST}/`);
    if (url === null) throw invalid("protocol", value);
    return url.protocol.slice(0, -1);
  },

  username(value) {
    const url = dummyURL();
    url.username = value;
    return url.username;
  },

  password(value) {
    const url = dummyURL();
    url.password = value;
    return url.password;
  },

  hostname(value) {
    const url = dummyURL();
    url.hostname = value;
    // The setters of URL ignore invalid values.
    if (url.hostname === DUMMY_HOST) throw invalid("hostname", value);
    return url.hostname;
  },

  /** https://urlpattern.spec.whatwg.org/#canonicalize-an-ipv6-hostname */
  ipv6(value) {
    if (!/^[\da-f[\]:]*$/i.test(value)) throw invalid("hostname", value);
    return value.toLowerCase();
  },

  /** https://urlpattern.spec.whatwg.org/#canonicalize-a-port */
  port(value, protocol = "") {
    const digits = /^\d+/.exec(value.replace(ignored, ""))?.[0];
    if (digits === undefined || Number(digits) > 65_535) throw invalid("port", value);
    const port = `${Number(digits)}`;
    return SPECIAL.get(protocol) === port ? "" : port;
  },

  /** https://urlpattern.spec.whatwg.org/#canonicalize-a-pathname */
  pathname(value) {
    const url = dummyURL();
    const hasSlash = value.startsWith("/");
    url.pathname = hasSlash ? value : `/-${value}`;
    return hasSlash ? url.pathname : url.pathname.slice(2);
  },

  /** https://urlpattern.spec.whatwg.org/#canonicalize-an-opaque-pathname */
  opaquePathname(value) {
    const path = value.replace(ignored, "").replace(/[?#].*$/s, "");
    return path.replace(/[^ -~]/gu, (point) => (point < " " || point === "\x7f" ? encodeControl(point) : encodeURIComponent(point)));
  },

  search(value) {
    const url = dummyURL();
    url.search = `?${value}`;
    return url.search.slice(1);
  },

  hash(value) {
    const url = dummyURL();
    url.hash = `#${value}`;
    return url.hash.slice(1);
  },
};

const encodeControl = (point) => `%${point.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;

/** https://urlpattern.spec.whatwg.org/#is-an-absolute-pathname */
function isAbsolutePathname(path, isPattern) {
  return path.startsWith("/") || (isPattern && (path.startsWith("\\/") || path.startsWith("{/")));
}

/** A component is inherited from the base URL if neither it nor an earlier component is given. */
const INHERITED = ["protocol", "hostname", "port", "pathname", "search", "hash"];

function inherit(result, init, base, isPattern) {
  const asPattern = (text) => (isPattern ? escapePattern(text) : text);
  const parts = {
    protocol: base.protocol.slice(0, -1),
    hostname: base.hostname,
    port: base.port,
    pathname: base.pathname,
    search: base.search.slice(1),
    hash: base.hash.slice(1),
  };
  for (const name of INHERITED) {
    if (init[name] !== undefined) break;
    result[name] = asPattern(parts[name]);
  }
  if (isPattern || ["protocol", "hostname", "port", "username"].some((name) => init[name] !== undefined)) return;
  result.username = base.username;
  if (init.password === undefined) result.password = base.password;
}

const hasOpaquePath = (url) => url.host === "" && !url.pathname.startsWith("/");

/** https://urlpattern.spec.whatwg.org/#process-a-urlpatterninit; `result` holds the defaults. */
export function processInit(init, isPattern, result = {}) {
  let base = null;
  if (init.baseURL !== undefined) {
    base = URL.parse(init.baseURL);
    if (base === null) throw new TypeError(`URLPattern: '${init.baseURL}' is not a valid base URL.`);
    inherit(result, init, base, isPattern);
  }
  const canonical = (name, value, ...more) => (isPattern || value === "" ? value : canonicalize[name](value, ...more));
  if (init.protocol !== undefined) result.protocol = canonical("protocol", init.protocol.replace(/:$/, ""));
  for (const name of ["username", "password", "hostname"]) {
    if (init[name] !== undefined) result[name] = canonical(name, init[name]);
  }
  const protocol = result.protocol ?? "";
  if (init.port !== undefined) result.port = canonical("port", init.port, protocol);
  if (init.pathname !== undefined) {
    let path = init.pathname;
    if (base !== null && !hasOpaquePath(base) && !isAbsolutePathname(path, isPattern)) {
      const directory = base.pathname.slice(0, base.pathname.lastIndexOf("/") + 1);
      path = (isPattern ? escapePattern(directory) : directory) + path;
    }
    result.pathname = canonical(protocol === "" || SPECIAL.has(protocol) ? "pathname" : "opaquePathname", path);
  }
  if (init.search !== undefined) result.search = canonical("search", init.search.replace(/^\?/, ""));
  if (init.hash !== undefined) result.hash = canonical("hash", init.hash.replace(/^#/, ""));
  return result;
}
