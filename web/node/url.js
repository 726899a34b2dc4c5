// https://nodejs.org/api/url.html: the classes of the web and Node's older functions.
import { URL, URLSearchParams } from "../url/url.js";
import { codedError, invalidArgument, requireString } from "./errors.js";
import { parse as parseQuery, stringify as stringifyQuery } from "./querystring.js";
import { toUnicode } from "./punycode.js";

/** https://nodejs.org/api/url.html#urldomaintoasciidomain: "" for an invalid host. */
export function domainToASCII(domain) {
  try {
    return new URL(`ws://${domain}`).hostname;
  } catch {
    return "";
  }
}

export function domainToUnicode(domain) {
  return toUnicode(domainToASCII(domain));
}

/** https://nodejs.org/api/url.html#urlfileurltopathurl-options */
export function fileURLToPath(address) {
  const url = typeof address === "string" ? new URL(address) : address;
  if (!(url instanceof URL)) throw invalidArgument("path", "of type string or an instance of URL", address);
  if (url.protocol !== "file:") throw codedError(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  if (url.hostname !== "") {
    throw codedError(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
  }
  if (/%2f/i.test(url.pathname)) {
    throw codedError(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
  }
  return decodeURIComponent(url.pathname);
}

export function pathToFileURL(path) {
  requireString(path, "path");
  const absolute = path.startsWith("/") ? path : `/${path}`;
  const escapes = { "%": "%25", "\\": "%5C", "\n": "%0A", "\r": "%0D", "\t": "%09", "?": "%3F", "#": "%23" };
  return new URL(`file://${absolute.replace(/[%\\\n\r\t?#]/g, (char) => escapes[char])}`);
}

export function urlToHttpOptions(url) {
  const { protocol, hostname, hash, search, pathname, href, port, username, password } = url;
  return {
    __proto__: null, protocol, hostname: hostname.replace(/^\[(.*)\]$/, "$1"), hash, search, pathname, path: `${pathname}${search}`, href,
    ...(port === "" ? {} : { port: Number(port) }),
    ...(username === "" && password === "" ? {} : { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }),
  };
}

/** The result of url.parse(). */
export function Url() {
  for (const name of ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"]) {
    this[name] = null;
  }
}

const SLASHED = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);
// Characters that url.parse() always escapes.
const UNWISE = /[\s"<>\\^`{|}']/g;

function splitAuthority(url, authority) {
  const at = authority.lastIndexOf("@");
  if (at !== -1) url.auth = decodeURIComponent(authority.slice(0, at));
  const host = authority.slice(at + 1);
  const port = /:([0-9]*)$/.exec(host);
  const name = (port === null ? host : host.slice(0, port.index)).toLowerCase();
  if (port !== null && port[1] !== "") [, url.port] = port;
  url.hostname = name.startsWith("[") ? name.slice(1, -1) : /[^\0-\x7f]/.test(name) ? domainToASCII(name) : name;
  url.host = `${name.startsWith("[") ? name : url.hostname}${url.port === null ? "" : `:${url.port}`}`;
}

/** https://nodejs.org/api/url.html#urlparseurlstring-parsequerystring-slashesdenotehost: lenient, and older than the URL standard. */
export function parse(address, withQuery = false, slashesDenoteHost = false) {
  if (address instanceof Url) return address;
  requireString(address, "url");
  const url = new Url();
  let rest = address.trim().replace(UNWISE, (char) => (char === "\\" ? "/" : encodeURIComponent(char).replace("'", "%27")));
  const hash = rest.indexOf("#");
  if (hash !== -1) [url.hash, rest] = [rest.slice(hash), rest.slice(0, hash)];
  const question = rest.indexOf("?");
  if (question !== -1) [url.search, rest] = [rest.slice(question), rest.slice(0, question)];
  else if (withQuery) url.search = "";
  const protocol = /^[a-z][a-z0-9.+-]*:/i.exec(rest)?.[0];
  if (protocol !== undefined) [url.protocol, rest] = [protocol.toLowerCase(), rest.slice(protocol.length)];
  const hasSlashes = rest.startsWith("//") && (slashesDenoteHost || protocol !== undefined || /^\/\/[^@/]+@[^@/]+/.test(rest));
  if (hasSlashes) [url.slashes, rest] = [true, rest.slice(2)];
  // With a scheme that is not of the web, the host follows the colon directly: `mailto:somebody@example.com`.
  if (url.protocol !== "javascript:" && (hasSlashes || (protocol !== undefined && !SLASHED.has(url.protocol)))) {
    const end = rest.indexOf("/");
    splitAuthority(url, end === -1 ? rest : rest.slice(0, end));
    rest = end === -1 ? "" : rest.slice(end);
  }
  const query = url.search === null ? null : url.search.slice(1);
  url.query = withQuery ? parseQuery(query ?? "") : query;
  if (rest !== "") url.pathname = rest;
  if (SLASHED.has(url.protocol) && url.hostname && url.pathname === null) url.pathname = "/";
  if (url.pathname !== null || url.search) url.path = `${url.pathname ?? ""}${url.search ?? ""}`;
  url.href = format(url);
  return url;
}

function formatUrl(url, { auth = true, fragment = true, search = true, unicode = false }) {
  const copy = new URL(url.href);
  if (!auth) copy.username = copy.password = "";
  if (!fragment) copy.hash = "";
  if (!search) copy.search = "";
  return unicode ? copy.href.replace(copy.hostname, domainToUnicode(copy.hostname)) : copy.href;
}

/** https://nodejs.org/api/url.html#urlformaturl-options and https://nodejs.org/api/url.html#urlformaturlobject */
export function format(address, options = {}) {
  if (typeof address === "string") return format(parse(address));
  if (address instanceof URL) return formatUrl(address, options ?? {});
  if (typeof address !== "object" || address === null) throw invalidArgument("urlObject", "one of type object or string", address);
  let protocol = address.protocol ?? "";
  if (protocol !== "" && !protocol.endsWith(":")) protocol += ":";
  let host = "";
  const auth = address.auth ? `${encodeURIComponent(address.auth).replace(/%3A/i, ":")}@` : "";
  if (address.host) host = auth + address.host;
  else if (address.hostname) {
    const name = address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname;
    host = `${auth}${name}${address.port ? `:${address.port}` : ""}`;
  }
  let pathname = (address.pathname ?? "").replace(/[?#]/g, encodeURIComponent);
  const isSlashed = address.slashes || SLASHED.has(protocol) || (protocol === "" && host !== "" && address.slashes !== false);
  if (isSlashed && (host !== "" || protocol === "file:" || address.slashes)) {
    host = `//${host}`;
    if (pathname !== "" && !pathname.startsWith("/")) pathname = `/${pathname}`;
  }
  const query = address.query !== null && typeof address.query === "object" ? stringifyQuery(address.query) : "";
  let search = address.search || (query === "" ? "" : `?${query}`);
  if (search !== "" && !search.startsWith("?")) search = `?${search}`;
  let hash = address.hash ?? "";
  if (hash !== "" && !hash.startsWith("#")) hash = `#${hash}`;
  return `${protocol}${host}${pathname}${search.replaceAll("#", "%23")}${hash}`;
}

/** https://nodejs.org/api/url.html#urlresolvefrom-to */
export function resolve(from, to) {
  const base = parse(from, false, true);
  const reference = parse(to, false, true);
  const isOfBase = reference.protocol === null || (reference.protocol === base.protocol && reference.host === null);
  if (!isOfBase) return reference.href;
  // https://www.rfc-editor.org/rfc/rfc3986#section-5.2.2
  const { pathname, search, hash } = reference;
  const { protocol } = base;
  if (reference.host !== null) {
    return format(Object.assign(reference, { protocol, pathname: pathname ?? (SLASHED.has(protocol) ? "/" : null) }));
  }
  if (pathname === null) return format(Object.assign(base, { search: search ?? base.search, hash }));
  return format(Object.assign(base, { pathname: mergePaths(base, pathname), search, hash }));
}

/** https://www.rfc-editor.org/rfc/rfc3986#section-5.2.3 and 5.2.4. A relative path keeps its leading dots. */
function mergePaths(base, path) {
  const folder = base.pathname?.slice(0, base.pathname.lastIndexOf("/") + 1) || (base.host === null ? "" : "/");
  const merged = path.startsWith("/") ? path : `${folder}${path}`;
  const isAbsolute = merged.startsWith("/");
  const names = merged.slice(isAbsolute ? 1 : 0).split("/");
  const kept = [];
  for (const name of names) {
    if (name === "..") {
      if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
      else if (!isAbsolute) kept.push(name);
    } else if (name !== ".") kept.push(name);
  }
  const isFolder = ["", ".", ".."].includes(names.at(-1)) && kept.at(-1) !== "";
  return `${isAbsolute ? "/" : ""}${kept.join("/")}${isFolder && kept.length > 0 ? "/" : ""}`;
}

export function resolveObject(from, to) {
  return parse(resolve(format(from), format(to)));
}

Url.prototype.format = function formatThis() {
  return format(this);
};
Url.prototype.resolve = function resolveFromThis(to) {
  return resolve(format(this), to);
};

export { URL, URLSearchParams };
