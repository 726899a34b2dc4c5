// https://fetch.spec.whatwg.org/#request-class
import { cloneBody, extractBody, isBodyOfGet, isUnusable, moveBody } from "./body.js";
import { includeBody } from "./body_mixin.js";
import { HeaderList } from "./header_list.js";
import { createHeaders, fillHeaders } from "./headers.js";
import { readMethod, readOptions, toRequestInit, toRequestURL } from "./request_options.js";
import { createDependentSignal, createSignal } from "../dom/abort.js";
import { DOMException } from "../dom/exception.js";
import { lazy } from "../internal/lazy.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toUSVString, wrongArgument } from "../internal/webidl.js";
import { isReadableStream } from "../streams/streams.js";

const INTERNAL = Symbol("made by the platform");

// https://fetch.spec.whatwg.org/#concept-request. Fields that are null are computed by the functions below on first access.
export class RequestState {
  method = null;
  url = null; // normalized
  list = null; // HeaderList
  body = null; // Body
  headers = null; // Headers over the list
  guard = "none";
  signal = null; // AbortSignal
  makeSignal = createSignal;
  head = null; // head of an incoming request, as the front sent it: see incoming.js
  cfHead = null; // the head that request.cf comes from, of the request that this one was made from
  options = DEFAULTS;
}

// Options that a server hardly uses but keeps: https://fetch.spec.whatwg.org/#requestinit
const DEFAULTS = Object.freeze({
  cache: "default",
  credentials: "same-origin",
  integrity: "",
  keepalive: false,
  mode: "cors",
  redirect: "follow",
  referrer: "about:client",
  referrerPolicy: "",
  cf: undefined,
});

/** The state of a Request; undefined for anything else. */
export let requestState;
export let isRequest;
/** (RequestState) -> Request */
export let createRequest;

// Set by incoming.js: functions that parse the head of an incoming request.
let head = null;

export function setHeadReader(reader) {
  head = reader;
}

/** `cf` that nobody has read yet, if the head of a request has more of it than its headers say. */
export function cfOfHead(state) {
  const from = state.head ?? state.cfHead;
  return from !== null && from.includes("\ncf-atoll-") ? head.readCf(from) : undefined;
}

function methodOf(state) {
  return (state.method ??= head.readMethod(state));
}

function urlOf(state) {
  return (state.url ??= head.readURL(state));
}

export function listOf(state) {
  return (state.list ??= head.readHeaders(state));
}

function signalOf(state) {
  return (state.signal ??= state.makeSignal());
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 26 to 29. */
function readSignal(state, { signal }, input) {
  if (signal !== undefined && signal !== null) state.signal = createDependentSignal([signal]);
  else if (input !== null && signal === undefined) {
    if (input.signal !== null) state.signal = createDependentSignal([input.signal]);
    else state.makeSignal = () => createDependentSignal([signalOf(input)]);
  }
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 34 to 41. */
function readBody(state, init, input) {
  const { body } = init;
  const inputBody = input === null ? null : input.body;
  const isBody = body !== undefined && body !== null;
  // Step 35.
  const isOfGet = (isBody || inputBody !== null) && (state.method === "GET" || state.method === "HEAD");
  if (isOfGet && !isBodyOfGet(body ?? inputBody)) {
    throw new TypeError("Request with a GET or HEAD method cannot have a body.");
  }
  if (isBody) {
    // Step 37.
    const isStream = isReadableStream(body);
    if (isStream && init.keepalive) throw new TypeError("Request: keepalive excludes a stream as body.");
    state.body = extractBody(body);
    const { type } = state.body;
    if (type !== null && !state.list.has("content-type")) state.list.append("content-type", type);
    // Step 39, except that `duplex` is optional: Cloudflare does not know it, so workers written for Cloudflare omit it.
    if (isStream && state.options.mode === "no-cors") {
      throw new TypeError('Request: a body that is a stream cannot be sent with the mode "no-cors".');
    }
  } else if (inputBody !== null) {
    // Steps 40 and 41.
    if (isUnusable(inputBody)) throw new TypeError("Cannot reconstruct a Request with a used body.");
    state.body = moveBody(inputBody);
  }
  if (isOfGet) state.body.isOfGet = true;
}

/** https://fetch.spec.whatwg.org/#dom-request */
function initialize(state, input, init) {
  // Steps 5 and 6.
  const given = requestState(input);
  state.url = given === undefined ? toRequestURL(input) : urlOf(given);
  const options = given === undefined ? DEFAULTS : given.options;
  // Steps 10 to 24.
  state.options = init === EMPTY ? options : readOptions(init, options);
  // A blob: URL is resolved now. https://url.spec.whatwg.org/#concept-url-blob-entry
  if (given === undefined && state.url.startsWith("blob:")) {
    state.options = { ...state.options, blob: lazy("file/object_url.js").resolveBlobURL(state.url) };
  }
  if (given !== undefined) state.cfHead = given.head ?? given.cfHead;
  // Steps 25 and 32.
  state.method = readMethod(init, given === undefined ? "GET" : methodOf(given), state.options.mode);
  readSignal(state, init, given ?? null);
  // Steps 31 to 33.
  if (init.headers !== undefined) fillHeaders((state.list = new HeaderList()), init.headers);
  else state.list = given === undefined ? new HeaderList() : listOf(given).copy();
  readBody(state, init, given ?? null);
}

const EMPTY = Object.freeze({ __proto__: null }); // no prototype, so that properties of Object.prototype do not count

export class Request {
  #state;

  constructor(input, init = undefined) {
    if (input === INTERNAL) {
      this.#state = init;
      return;
    }
    requireArguments(arguments.length, 1, "Request constructor", "Request or string");
    if (init !== undefined && init !== null && typeof init !== "object" && typeof init !== "function") {
      throw wrongArgument("Request constructor", 1, "RequestInitializerDict or Request");
    }
    const state = new RequestState();
    const url = isRequest(input) ? input : toUSVString(input);
    initialize(state, url, init === undefined ? EMPTY : toRequestInit(init));
    this.#state = state;
  }

  get method() {
    return methodOf(this.#state);
  }

  get url() {
    return urlOf(this.#state);
  }

  get headers() {
    const state = this.#state;
    return (state.headers ??= createHeaders(listOf(state), state.guard));
  }

  get destination() {
    this.#state;
    return "";
  }

  get referrer() {
    return this.#state.options.referrer;
  }

  get referrerPolicy() {
    return this.#state.options.referrerPolicy;
  }

  get mode() {
    return this.#state.options.mode;
  }

  get credentials() {
    return this.#state.options.credentials;
  }

  get cache() {
    return this.#state.options.cache;
  }

  get redirect() {
    return this.#state.options.redirect;
  }

  get integrity() {
    return this.#state.options.integrity;
  }

  get keepalive() {
    return this.#state.options.keepalive;
  }

  get isReloadNavigation() {
    this.#state;
    return false;
  }

  get isHistoryNavigation() {
    this.#state;
    return false;
  }

  /** https://developers.cloudflare.com/workers/runtime-apis/request/#incomingrequestcfproperties */
  get cf() {
    const state = this.#state;
    const from = state.head ?? state.cfHead;
    if (from !== null && state.options.cf === undefined) state.options = { ...state.options, cf: head.readCf(from) };
    return state.options.cf;
  }

  get signal() {
    return signalOf(this.#state);
  }

  get duplex() {
    this.#state;
    return "half";
  }

  /** https://fetch.spec.whatwg.org/#dom-request-clone */
  clone() {
    const state = this.#state;
    if (isUnusable(state.body)) throw new TypeError("Body has already been used. It can only be used once. Use tee() first if you need to read it twice.");
    const copy = new RequestState();
    copy.method = methodOf(state);
    copy.url = urlOf(state);
    copy.list = listOf(state).copy();
    copy.guard = state.guard;
    copy.options = state.options;
    copy.cfHead = state.head ?? state.cfHead;
    copy.makeSignal = () => createDependentSignal([signalOf(state)]);
    copy.body = state.body === null ? null : cloneBody(state.body);
    return createRequest(copy);
  }

  static {
    isRequest = (value) => typeof value === "object" && value !== null && #state in value;
    requestState = (value) => (isRequest(value) ? value.#state : undefined);
    createRequest = (state) => new Request(INTERNAL, state);
    includeBody(Request, (request) => request.#state.body, (request) => listOf(request.#state).get("content-type"));
  }
}

/** Like Cloudflare, only without a body: a stream cannot be copied. */
function cloneRequest(request) {
  if (requestState(request).body === null) return request.clone();
  throw new DOMException("ReadableStream can only be serialized for RPC.", "DataCloneError");
}

defineInterface(Request, {
  name: "Request",
  clone: cloneRequest,
  describe: ({ method, url, headers, redirect, bodyUsed }) => ({ method, url, headers, redirect, bodyUsed }),
});
