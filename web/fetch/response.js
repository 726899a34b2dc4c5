// https://fetch.spec.whatwg.org/#response-class
import { DOMException } from "../dom/exception.js";
import { lazy } from "../internal/lazy.js";
import { Body, cloneBody, extractBody, isKnownEmpty, isUnusable } from "./body.js";
import { includeBody } from "./body_mixin.js";
import { HeaderList } from "./header_list.js";
import { createHeaders, fillHeaders } from "./headers.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toByteString, toDictionary, toDOMString, toUnsigned, toUSVString, wrongArgument, wrongMember } from "../internal/webidl.js";
import { parseHref } from "../url/url.js";

const INTERNAL = Symbol("made by the platform");

/** https://fetch.spec.whatwg.org/#null-body-status */
export const NULL_BODY_STATUS = [101, 103, 204, 205, 304];
/** https://fetch.spec.whatwg.org/#redirect-status */
const REDIRECT_STATUS = [301, 302, 303, 307, 308];
const CODINGS = ["automatic", "manual"]; // of encodeBody
// https://www.rfc-editor.org/rfc/rfc9112#name-status-line: characters that a reason phrase must not contain.
const NOT_IN_REASON = /[^\t\x20-\x7e\x80-\xff]/;

// https://fetch.spec.whatwg.org/#concept-response. The header list is created on first access. Until then the only header that
// most responses have is kept in `contentType`.
class ResponseState {
  type = "default"; // "default" | "basic" | "error"
  url = "";
  status = 200;
  statusText = "";
  list = null; // HeaderList
  contentType = null; // the only header while `list` is null
  headers = null; // Headers over the list
  guard = "none";
  body = null; // Body
  cf = undefined;
  encodeBody = "automatic";
  redirected = false;
  webSocket = null;
}

/** The state of a Response; undefined for anything else. */
export let responseState;
export let isResponse;
/** (ResponseState) -> Response */
export let createResponse;

export function headerList(state) {
  if (state.list === null) {
    state.list = new HeaderList(state.contentType === null ? [] : ["content-type", state.contentType]);
    state.contentType = null;
  }
  return state.list;
}

function contentTypeOf(state) {
  return state.list === null ? state.contentType : state.list.get("content-type");
}

/** https://fetch.spec.whatwg.org/#initialize-a-response, up to the body. */
function initialize(state, init) {
  // `cf` and `encodeBody` are https://developers.cloudflare.com/workers/runtime-apis/response/#parameters.
  if (init !== null && typeof init !== "object" && typeof init !== "function") {
    throw wrongArgument("Response constructor", 1, "InitializerDict or Response");
  }
  const { cf, encodeBody, headers, status, statusText, webSocket } = toDictionary(init, "Response");
  if (cf !== undefined && cf !== null) {
    if (typeof cf !== "object") throw wrongMember("cf", "InitializerDict", "Object");
    state.cf = cf;
  }
  if (encodeBody !== undefined) {
    state.encodeBody = toDOMString(encodeBody);
    if (!CODINGS.includes(state.encodeBody)) throw new TypeError(`encodeBody: unexpected value: ${state.encodeBody.slice(0, 80)}`);
  }
  // Steps 1 and 3.
  if (status !== undefined) {
    state.status = toUnsigned(status, 16);
    const isSocket = webSocket !== undefined && webSocket !== null;
    if (isSocket && state.status !== 101) {
      throw new RangeError("Responses with a WebSocket must have status code 101.");
    }
    if ((state.status < 200 && !isSocket) || state.status > 599) {
      throw new RangeError("Responses may only be constructed with status codes in the range 200 to 599, inclusive.");
    }
  }
  if (webSocket !== undefined && webSocket !== null) {
    if (!lazy("sockets/websocket.js").isWebSocket(webSocket)) throw wrongMember("webSocket", "InitializerDict", "WebSocket");
    if (status === undefined) throw new RangeError("Responses with a WebSocket must have status code 101.");
    state.webSocket = webSocket;
  }
  // Steps 2 and 4.
  if (statusText !== undefined) {
    state.statusText = toByteString(statusText, "Response");
    if (NOT_IN_REASON.test(state.statusText)) {
      throw new TypeError("Invalid statusText");
    }
  }
  // Step 5.
  if (headers !== undefined) {
    state.list = new HeaderList();
    fillHeaders(state.list, headers);
  }
}

/** https://fetch.spec.whatwg.org/#initialize-a-response, step 6. */
function setBody(state, body, type = body.type) {
  if (NULL_BODY_STATUS.includes(state.status)) {
    // At Cloudflare, a body that is known to be empty counts as none.
    if (isKnownEmpty(body)) return;
    throw new TypeError("Response with null body status (101, 204, 205, or 304) cannot have a body.");
  }
  state.body = body;
  if (type === null) return;
  if (state.list === null) state.contentType = type;
  else if (!state.list.has("content-type")) state.list.append("content-type", type);
}

function serializeJson(data) {
  const text = JSON.stringify(data);
  if (text === undefined) throw new TypeError("Response.json: the value cannot be written as JSON.");
  return text;
}

/** A response from a server. `source` is null, a Uint8Array, or an object with read() and cancel(). */
export function makeResponse({ status, statusText, list, url, redirected, source, webSocket = null }) {
  const state = new ResponseState();
  state.status = status;
  state.statusText = statusText;
  state.list = list;
  state.url = url;
  state.redirected = redirected;
  state.guard = "immutable";
  state.webSocket = webSocket;
  state.type = "basic"; // a worker has no origin, so responses need no filtering
  if (source !== null) state.body = new Body(source);
  return createResponse(state);
}

export class Response {
  #state;

  /** https://fetch.spec.whatwg.org/#dom-response */
  constructor(body = null, init = undefined) {
    if (body === INTERNAL) {
      this.#state = init;
      return;
    }
    const state = new ResponseState();
    const isBody = body !== null && body !== undefined;
    const extracted = isBody ? extractBody(body) : null;
    if (init !== undefined) initialize(state, init);
    if (isBody) setBody(state, extracted);
    this.#state = state;
  }

  /** https://fetch.spec.whatwg.org/#dom-response-error */
  static error() {
    const state = new ResponseState();
    state.type = "error";
    state.status = 0;
    state.guard = "immutable";
    return createResponse(state);
  }

  /** https://fetch.spec.whatwg.org/#dom-response-redirect */
  static redirect(url, status = 302) {
    requireArguments(arguments.length, 1, "Response.redirect");
    // Steps 1 and 2. A worker has no base URL, so the URL must be absolute.
    const href = parseHref(toUSVString(url));
    if (href === undefined) throw new TypeError(`Unable to parse URL: ${toUSVString(url).slice(0, 200)}`);
    // Step 3.
    const code = toUnsigned(status, 16);
    if (!REDIRECT_STATUS.includes(code)) {
      throw new RangeError(`${code} is not a redirect status code. It must be one of: 301, 302, 303, 307, or 308.`);
    }
    // Steps 4 to 7.
    const state = new ResponseState();
    state.status = code;
    state.list = new HeaderList(["location", href]);
    state.guard = "immutable";
    return createResponse(state);
  }

  /** https://fetch.spec.whatwg.org/#dom-response-json */
  static json(data, init = undefined) {
    requireArguments(arguments.length, 1, "Response.json");
    const text = serializeJson(data);
    const state = new ResponseState();
    if (init !== undefined) initialize(state, init);
    setBody(state, extractBody(text), "application/json");
    return createResponse(state);
  }

  get type() {
    return this.#state.type;
  }

  /** https://developers.cloudflare.com/workers/runtime-apis/response/#properties */
  get webSocket() {
    return this.#state.webSocket;
  }

  get url() {
    return this.#state.url;
  }

  get redirected() {
    return this.#state.redirected;
  }

  get status() {
    return this.#state.status;
  }

  get ok() {
    const { status } = this.#state;
    return status >= 200 && status <= 299;
  }

  get statusText() {
    return this.#state.statusText;
  }

  get headers() {
    const state = this.#state;
    return (state.headers ??= createHeaders(headerList(state), state.guard));
  }

  get cf() {
    return this.#state.cf;
  }

  /** https://fetch.spec.whatwg.org/#dom-response-clone */
  clone() {
    const state = this.#state;
    if (isUnusable(state.body)) throw new TypeError("Body has already been used. It can only be used once. Use tee() first if you need to read it twice.");
    const copy = new ResponseState();
    copy.type = state.type;
    copy.url = state.url;
    copy.status = state.status;
    copy.statusText = state.statusText;
    copy.list = state.list?.copy() ?? null;
    copy.contentType = state.contentType;
    copy.guard = state.guard;
    copy.cf = state.cf;
    copy.encodeBody = state.encodeBody;
    copy.redirected = state.redirected;
    copy.body = state.body === null ? null : cloneBody(state.body);
    return createResponse(copy);
  }

  static {
    isResponse = (value) => typeof value === "object" && value !== null && #state in value;
    responseState = (value) => (isResponse(value) ? value.#state : undefined);
    createResponse = (state) => new Response(INTERNAL, state);
    includeBody(Response, (response) => response.#state.body, (response) => contentTypeOf(response.#state));
  }
}

/** Like Cloudflare, only without a body: a stream cannot be copied. */
function cloneResponse(response) {
  if (responseState(response).body === null) return response.clone();
  throw new DOMException("ReadableStream can only be serialized for RPC.", "DataCloneError");
}

defineInterface(Response, {
  name: "Response",
  clone: cloneResponse,
  describe: ({ status, statusText, headers, ok, bodyUsed, type, url }) => ({
    status, statusText, headers, ok, bodyUsed, type, url,
  }),
});
