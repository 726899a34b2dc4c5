// The conversions of RequestInit. https://fetch.spec.whatwg.org/#requestinit
import { isToken } from "./header_list.js";
import { toByteString, toUSVString } from "../internal/webidl.js";
import { lastHadCredentials, parseHref } from "../url/url.js";

export const CACHES = ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"];
export const CREDENTIALS = ["omit", "same-origin", "include"];
export const MODES = ["same-origin", "no-cors", "cors", "navigate"];
export const REDIRECTS = ["follow", "error", "manual"];
export const REFERRER_POLICIES = [
  "", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin",
  "origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url",
];

/** https://fetch.spec.whatwg.org/#concept-method-normalize: these and no others, so "patch" stays as it is. */
const NORMALIZED = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
/** https://fetch.spec.whatwg.org/#forbidden-method */
const FORBIDDEN = ["CONNECT", "TRACE", "TRACK"];

/** https://fetch.spec.whatwg.org/#dom-request, step 25. */
export function toMethod(value) {
  const method = toByteString(value, "Request: method");
  if (NORMALIZED.includes(method)) return method;
  if (!isToken(method)) throw new TypeError(`Request: ${JSON.stringify(method.slice(0, 80))} is not a valid method.`);
  const upper = method.toUpperCase();
  if (FORBIDDEN.includes(upper)) throw new TypeError(`Request: the method ${upper} is not allowed.`);
  return NORMALIZED.includes(upper) ? upper : method;
}

/** https://fetch.spec.whatwg.org/#dom-request, step 5. There is no base a relative address could be relative to. */
export function toRequestURL(value) {
  const input = toUSVString(value);
  const href = parseHref(input);
  if (href === undefined) {
    throw new TypeError(`Request: invalid URL: ${input.slice(0, 200)}; it must be absolute.`);
  }
  if (lastHadCredentials()) throw new TypeError("Request: the URL must not hold a user name or password.");
  return href;
}

/** https://fetch.spec.whatwg.org/#dom-request, step 14. */
export function toReferrer(value) {
  const input = toUSVString(value);
  if (input === "") return "";
  const href = parseHref(input);
  if (href === undefined) throw new TypeError("Request: the referrer is not a valid URL.");
  return href;
}
