// The conversions of RequestInit. https://fetch.spec.whatwg.org/#requestinit
import { isToken } from "./header_list.js";
import { isAbortSignal } from "../dom/abort.js";
import { toByteString, toDictionary, toDOMString, toEnum, toUSVString } from "../internal/webidl.js";
import { lastHadCredentials, parseHref } from "../url/url.js";

const CACHES = ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"];
const CREDENTIALS = ["omit", "same-origin", "include"];
const MODES = ["same-origin", "no-cors", "cors", "navigate"];
const REDIRECTS = ["follow", "error", "manual"];
const REFERRER_POLICIES = [
  "", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin",
  "origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url",
];

/** https://fetch.spec.whatwg.org/#concept-method-normalize: only these, so "patch" is unchanged. */
const NORMALIZED = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
/** https://fetch.spec.whatwg.org/#forbidden-method */
const FORBIDDEN = ["CONNECT", "TRACE", "TRACK"];

const SAFELISTED = ["GET", "HEAD", "POST"]; // https://fetch.spec.whatwg.org/#cors-safelisted-method

/** https://fetch.spec.whatwg.org/#dom-request, step 25. */
function toMethod(method) {
  if (NORMALIZED.includes(method)) return method;
  if (!isToken(method)) throw new TypeError(`Request: ${JSON.stringify(method.slice(0, 80))} is not a valid method.`);
  const upper = method.toUpperCase();
  if (FORBIDDEN.includes(upper)) throw new TypeError(`Request: the method ${upper} is not allowed.`);
  return NORMALIZED.includes(upper) ? upper : method;
}

/** https://fetch.spec.whatwg.org/#dom-request, step 5. A worker has no base URL, so the URL must be absolute. */
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
function toReferrer(input) {
  if (input === "") return "";
  const href = parseHref(input);
  if (href === undefined) throw new TypeError("Request: the referrer is not a valid URL.");
  return href;
}

function toSignal(value) {
  if (value !== null && !isAbortSignal(value)) throw new TypeError("Request: signal is not an AbortSignal.");
  return value;
}

function toCf(value) {
  if (value !== null && typeof value !== "object") throw new TypeError("Request: cf is not an object.");
  return value ?? undefined;
}

// The members of RequestInit and their conversions, in the order in which Web IDL reads them.
const MEMBERS = [
  ["body", (value) => value],
  ["cache", (value) => toEnum(value, CACHES, "Request: cache")],
  ["cf", toCf], // https://developers.cloudflare.com/workers/runtime-apis/request/#the-cf-property-requestinitcfproperties
  ["credentials", (value) => toEnum(value, CREDENTIALS, "Request: credentials")],
  ["duplex", (value) => toEnum(value, ["half"], "Request: duplex")],
  ["headers", (value) => value],
  ["integrity", toDOMString],
  ["keepalive", Boolean],
  ["method", (value) => toByteString(value, "Request: method")],
  ["mode", (value) => toEnum(value, MODES, "Request: mode")],
  ["priority", (value) => toEnum(value, ["high", "low", "auto"], "Request: priority")],
  ["redirect", (value) => toEnum(value, REDIRECTS, "Request: redirect")],
  ["referrer", toUSVString],
  ["referrerPolicy", (value) => toEnum(value, REFERRER_POLICIES, "Request: referrerPolicy")],
  ["signal", toSignal],
  ["window", (value) => value],
];

// Members that a request only stores and copies.
const KEPT = ["cache", "cf", "credentials", "integrity", "keepalive", "mode", "redirect", "referrerPolicy"];

/** https://webidl.spec.whatwg.org/#js-dictionary, for RequestInit: each member is read once. */
export function toRequestInit(value) {
  const given = toDictionary(value, "Request");
  const init = {};
  for (const [name, convert] of MEMBERS) {
    const member = given[name];
    if (member !== undefined) init[name] = convert(member);
  }
  return init;
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 12 to 24. `before`: the options of the input. */
export function readOptions(init, before) {
  const options = { ...before };
  // Step 10.
  if (init.window !== undefined && init.window !== null) throw new TypeError("Request: window must be null.");
  // Step 14.
  if (init.referrer !== undefined) options.referrer = toReferrer(init.referrer);
  // Step 17.
  if (init.mode === "navigate") throw new TypeError('Request: the mode "navigate" is not allowed.');
  for (const name of KEPT) if (init[name] !== undefined) options[name] = init[name];
  // Step 21.
  if (options.cache === "only-if-cached" && options.mode !== "same-origin") {
    throw new TypeError('Request: the cache mode "only-if-cached" needs the mode "same-origin".');
  }
  return options;
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 25 and 32.1. */
export function readMethod(init, before, mode) {
  const method = init.method === undefined ? before : toMethod(init.method);
  if (mode === "no-cors" && !SAFELISTED.includes(method)) {
    throw new TypeError(`Request: the method ${method} is not allowed with the mode "no-cors".`);
  }
  return method;
}
