// `node:_http_common`: tokens, header values and their checks, with the errors of Node.
import { codedError, shown } from "./errors.js";

const TOKEN = /^[\^_`a-zA-Z\-0-9!#$%&'*+.|~]+$/;
const INVALID_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

export const METHODS = [
  "ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY",
  "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND",
  "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
];

export { METHODS as methods };
export const CRLF = "\r\n";
export const chunkExpression = /(?:^|\W)chunked(?:$|\W)/i;
export const continueExpression = /(?:^|\W)100-continue(?:$|\W)/i;

export function _checkIsHttpToken(value) {
  return TOKEN.test(value);
}

export function _checkInvalidHeaderChar(value) {
  return INVALID_VALUE.test(value);
}

/** https://nodejs.org/api/http.html#httpvalidateheadernamename-label */
export function validateHeaderName(name, label = undefined) {
  if (typeof name !== "string" || !name || !TOKEN.test(name)) {
    throw codedError(TypeError, "ERR_INVALID_HTTP_TOKEN", `${label || "Header name"} must be a valid HTTP token ["${shown(name)}"]`);
  }
}

/** https://nodejs.org/api/http.html#httpvalidateheadervaluename-value */
export function validateHeaderValue(name, value) {
  if (value === undefined) throw codedError(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "${value}" for header "${name}"`);
  if (INVALID_VALUE.test(value)) throw invalidCharacter("header content", name);
}

export function invalidCharacter(what, field = undefined) {
  const where = field === undefined ? "" : ` ["${field}"]`;
  return codedError(TypeError, "ERR_INVALID_CHAR", `Invalid character in ${what}${where}`);
}

export function headersSent(verb) {
  return codedError(Error, "ERR_HTTP_HEADERS_SENT", `Cannot ${verb} headers after they are sent to the client`);
}

export function notImplemented(method) {
  return codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The ${method} method is not implemented`);
}

export function optionNotImplemented(option) {
  return codedError(Error, "ERR_OPTION_NOT_IMPLEMENTED", `The ${option} option is not implemented`);
}
