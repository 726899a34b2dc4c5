// The target of a node:http request. Node connects to `host` and sends `path` unchanged; fetch takes one URL. So each part is
// checked before the URL is assembled: no path or port can name another host.
// https://nodejs.org/api/http.html#httprequestoptions-callback
import { parseHref } from "../url/url.js";
import { codedError, invalidArgument, invalidValue } from "./errors.js";

const INVALID_PATH = /[^\u0021-\u00ff]/; // as in Node
// Characters that fetch would drop or interpret, and bytes that it would encode as UTF-8.
const ESCAPED_IN_PATH = /[\\#\u007f-\u00ff]/g;
const INVALID_HOST = /[\u0000-\u0020"#%/:<>?@[\\\]^`{|}\u007f]/;
const IPV6 = /^[0-9a-f:.]*:[0-9a-f:.]*$/i;

/** A path, with Node's checks. */
export function toPath(value) {
  const path = `${value}`;
  if (INVALID_PATH.test(path)) {
    throw codedError(TypeError, "ERR_UNESCAPED_CHARACTERS", "Request path contains unescaped characters");
  }
  // Node sends other forms unchanged: to a proxy, or as a request that most servers refuse. fetch cannot send them.
  if (path[0] !== "/") throw invalidValue("options.path", path, `must begin with "/" in a worker`);
  return path;
}

export function toHost(value, name) {
  if (value !== null && value !== undefined && typeof value !== "string") {
    throw invalidArgument(`options.${name}`, "of type string or one of undefined or null", value);
  }
  return value;
}

/** https://nodejs.org/api/errors.html#err_socket_bad_port */
export function toPort(value) {
  if (typeof value !== "number" && typeof value !== "string") {
    throw invalidArgument("options.port", "one of type number or string", value);
  }
  const port = Number(value);
  if (`${value}`.trim() === "" || port !== port >>> 0 || port > 65535) {
    const received = typeof value === "string" ? `type string ('${value}')` : `type number (${value})`;
    throw codedError(RangeError, "ERR_SOCKET_BAD_PORT", `Port should be >= 0 and < 65536. Received ${received}.`);
  }
  return port;
}

function unknownHost(host) {
  return Object.assign(codedError(Error, "ENOTFOUND", `getaddrinfo ENOTFOUND ${host}`), {
    errno: -3008,
    syscall: "getaddrinfo",
    hostname: host,
  });
}

/** The URL of the request. A host that no resolver would find is thrown as the error that Node reports. */
export function hrefOf({ protocol, host, port }, path) {
  const name = host.replace(/^\[(.*)\]$/, "$1");
  const isAddress = IPV6.test(name);
  if (!isAddress && INVALID_HOST.test(name)) throw unknownHost(host);
  const origin = parseHref(`${protocol}//${isAddress ? `[${name}]` : name}:${port}/`);
  if (origin === undefined) throw unknownHost(host);
  const target = path.replace(ESCAPED_IN_PATH, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  const href = parseHref(origin.slice(0, -1) + target);
  if (!href?.startsWith(origin)) throw unknownHost(host);
  return href;
}
