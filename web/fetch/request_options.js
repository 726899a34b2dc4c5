// The conversions of RequestInit. https://fetch.spec.whatwg.org/#requestinit
import { isAbortSignal } from "../dom/abort.js";
import { toByteString, toDictionary, toDOMString, toEnum, toUSVString, wrongMember } from "../internal/webidl.js";
import { parseHref } from "../url/url.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";

const CACHES = ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"];
const CREDENTIALS = ["omit", "same-origin", "include"];
const MODES = ["same-origin", "no-cors", "cors", "navigate"];
const REDIRECTS = ["follow", "error", "manual"];
const REFERRER_POLICIES = [
  "", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin",
  "origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url",
];

/** https://fetch.spec.whatwg.org/#concept-method-normalize */
const NORMALIZED = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
// At Cloudflare a method is one of these.
const METHODS = new Set([
  ...NORMALIZED, "ACL", "BAN", "CHECKOUT", "COPY", "LOCK", "MERGE", "MKACTIVITY", "MKCOL", "MOVE", "MSEARCH", "NOTIFY", "PATCH",
  "PROPFIND", "PROPPATCH", "PURGE", "QUERY", "REPORT", "SEARCH", "SUBSCRIBE", "TRACE", "UNLOCK", "UNSUBSCRIBE",
]);

let upperCasesAll = true;
let hasCacheOption = true;
let hasNoCache = true;
whenFlagsAreSet(() => {
  upperCasesAll = isOn("upper_case_all_http_methods");
  hasCacheOption = isOn("cache_option_enabled");
  hasNoCache = isOn("cache_no_cache_enabled");
});

const SAFELISTED = ["GET", "HEAD", "POST"]; // https://fetch.spec.whatwg.org/#cors-safelisted-method

/** https://fetch.spec.whatwg.org/#dom-request, step 25. */
function toMethod(method) {
  if (METHODS.has(method)) return method;
  const upper = method.length < 16 ? method.toUpperCase() : "";
  if ((upperCasesAll ? METHODS.has(upper) : NORMALIZED.includes(upper))) return upper;
  throw new TypeError(`Invalid HTTP method string: ${method.slice(0, 80)}`);
}

function toCache(value) {
  if (!hasCacheOption) throw new Error("The 'cache' field on 'RequestInitializerDict' is not implemented.");
  const cache = toDOMString(value);
  if (!CACHES.includes(cache)) throw new TypeError(`Unsupported cache mode: ${cache.slice(0, 80)}`);
  if (cache === "no-cache" && !hasNoCache) throw new TypeError(`Unsupported cache mode: ${cache}`);
  return cache;
}

/** https://fetch.spec.whatwg.org/#dom-request, step 5. A worker has no base URL, so the URL must be absolute. */
export function toRequestURL(value) {
  const input = toUSVString(value);
  const href = parseHref(input);
  if (href === undefined) throw new TypeError(`Invalid URL: ${input.slice(0, 200)}`);
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
  if (value !== null && !isAbortSignal(value)) throw wrongMember("signal", "RequestInitializerDict", "AbortSignal");
  return value;
}

function toCf(value) {
  if (value !== null && typeof value !== "object") throw wrongMember("cf", "RequestInitializerDict", "Object");
  return value ?? undefined;
}

// The members of RequestInit and their conversions, in the order in which Web IDL reads them.
const MEMBERS = [
  ["body", (value) => value],
  ["cache", toCache],
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
