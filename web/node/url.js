// https://nodejs.org/api/url.html: the classes of the web and Node's older functions.
import { URL, URLSearchParams } from "../url/url.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, invalidValue, requireObject, requireString } from "./errors.js";
import { posix, win32 } from "./path.js";
import { unescapeBuffer } from "./querystring.js";
import { domainToASCII, domainToUnicode } from "./url_domains.js";
import { format, parse, resolve, resolveObject, Url } from "./url_legacy.js";

const KEPT = /[^!$&'()*+,\-./0-9:;=@A-Z_a-z]/gu;

function badPath(message, url) {
  return Object.assign(codedError(TypeError, "ERR_INVALID_FILE_URL_PATH", `File URL path ${message}`), { input: url });
}

function fileUrlOf(address) {
  const url = typeof address === "string" ? new URL(address) : address;
  if (!(url instanceof URL)) throw invalidArgument("path", "of type string or an instance of URL", address);
  if (url.protocol !== "file:") throw codedError(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  return url;
}

// The path of the URL before its escapes are decoded, and the host in front of it.
function pathOf(url, isWindows) {
  const { pathname, hostname } = url;
  if (!isWindows) {
    if (hostname !== "") throw codedError(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
    if (/%2f/i.test(pathname)) throw badPath("must not include encoded / characters", url);
    return ["", pathname];
  }
  if (/%2f|%5c/i.test(pathname)) throw badPath("must not include encoded \\ or / characters", url);
  const path = pathname.replaceAll("/", "\\");
  if (hostname !== "") return [`\\\\${domainToUnicode(hostname)}`, path];
  if (!/^\\[a-z]:/i.test(path)) throw badPath("must be absolute", url);
  return ["", path.slice(1)];
}

/** https://nodejs.org/api/url.html#urlfileurltopathurl-options */
export function fileURLToPath(address, options = undefined) {
  const [host, path] = pathOf(fileUrlOf(address), options?.windows ?? false);
  return host + decodeURIComponent(path);
}

/** The same as bytes, which need not be UTF-8. */
export function fileURLToPathBuffer(address, options = undefined) {
  const [host, path] = pathOf(fileUrlOf(address), options?.windows ?? false);
  return Buffer.concat([Buffer.from(host), Buffer.from(unescapeBuffer(path))]);
}

const escaped = (text) => text.toWellFormed().replace(KEPT, (char) => encodeURIComponent(char).replace("~", "%7E"));

/** https://nodejs.org/api/url.html#urlpathtofileurlpath-options */
export function pathToFileURL(path, options = undefined) {
  requireString(path, "path");
  const isWindows = options?.windows ?? false;
  if (isWindows && path.startsWith("\\\\")) {
    // A path of the network: `\\host\folder`, also behind `\\?\UNC\`.
    const isLong = path.startsWith("\\\\?\\UNC\\");
    const start = isLong ? 8 : 2;
    const end = path.indexOf("\\", start);
    if (end === -1) throw invalidValue("path", path, "Missing UNC resource path");
    if (end === 2) throw invalidValue("path", path, "Empty UNC servername");
    const url = new URL("file://");
    url.hostname = domainToASCII(path.slice(start, end));
    url.pathname = escaped(path.slice(end).replaceAll("\\", "/"));
    return url;
  }
  const dialect = isWindows ? win32 : posix;
  let resolved = dialect.resolve(path);
  if (/[/\\]$/.test(isWindows ? path : path.replaceAll("\\", "")) && !resolved.endsWith(dialect.sep)) resolved += dialect.sep;
  return new URL(`file://${isWindows ? "/" : ""}${escaped(isWindows ? resolved.replaceAll("\\", "/") : resolved)}`);
}

/** https://nodejs.org/api/url.html#urlurltohttpoptionsurl */
export function urlToHttpOptions(url) {
  requireObject(url, "url");
  const { protocol, hostname, hash, search, pathname, href, port, username, password } = url;
  return {
    __proto__: null,
    ...url,
    protocol,
    hostname: hostname?.startsWith("[") ? hostname.slice(1, -1) : hostname,
    hash,
    search,
    pathname,
    path: `${pathname || ""}${search || ""}`,
    href,
    ...(port === "" ? {} : { port: Number(port) }),
    ...(username || password ? { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` } : {}),
  };
}

export { domainToASCII, domainToUnicode, format, parse, resolve, resolveObject, Url, URL, URLSearchParams };
