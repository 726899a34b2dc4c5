// https://fetch.spec.whatwg.org/#request-class
import {
  bodyArrayBuffer,
  bodyBytes,
  bodyJson,
  bodyText,
  cloneBody,
  extractBody,
  isUnusable,
  isUsed,
  moveBody,
  streamOf,
  typeOfBody,
} from "./body.js";
import { HeaderList } from "./header_list.js";
import { createHeaders, fillHeaders } from "./headers.js";
import {
  CACHES,
  CREDENTIALS,
  MODES,
  REDIRECTS,
  REFERRER_POLICIES,
  toMethod,
  toReferrer,
  toRequestURL,
} from "./request_options.js";
import { createDependentSignal, createSignal, isAbortSignal } from "../dom/abort.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toDictionary, toDOMString, toEnum } from "../internal/webidl.js";
import { isReadableStream } from "../streams/streams.js";

const INTERNAL = Symbol("made by the platform");

// https://fetch.spec.whatwg.org/#concept-request. Fields that are null are found by the functions below when asked for.
export class RequestState {
  method = null;
  url = null; // as it is shown: normalised
  list = null; // HeaderList
  body = null; // Body
  headers = null; // Headers over the list
  guard = "none";
  signal = null; // AbortSignal
  makeSignal = createSignal;
  head = null; // of an incoming request, what the front sent: see incoming.js
  options = DEFAULTS;
}

// What a server has little use for, but keeps: https://fetch.spec.whatwg.org/#requestinit
const DEFAULTS = Object.freeze({
  cache: "default",
  credentials: "same-origin",
  integrity: "",
  keepalive: false,
  mode: "cors",
  redirect: "follow",
  referrer: "about:client",
  referrerPolicy: "",
});

/** The state of a Request; undefined for anything else. */
export let requestState;
export let isRequest;
/** (RequestState) -> Request */
export let createRequest;

// Set by incoming.js: how to read what the head of an incoming request says.
let head = null;

export function setHeadReader(reader) {
  head = reader;
}

function methodOf(state) {
  return (state.method ??= head.readMethod(state));
}

function urlOf(state) {
  return (state.url ??= head.readURL(state));
}

function listOf(state) {
  return (state.list ??= head.readHeaders(state));
}

function signalOf(state) {
  return (state.signal ??= state.makeSignal());
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 12 to 24: the options that are only kept. */
function readOptions(state, init) {
  const options = { ...state.options };
  if (init.window !== undefined && init.window !== null) throw new TypeError("Request: window must be null.");
  if (init.referrer !== undefined) options.referrer = toReferrer(init.referrer);
  if (init.referrerPolicy !== undefined) {
    options.referrerPolicy = toEnum(init.referrerPolicy, REFERRER_POLICIES, "Request: referrerPolicy");
  }
  if (init.mode !== undefined) {
    options.mode = toEnum(init.mode, MODES, "Request: mode");
    if (options.mode === "navigate") throw new TypeError('Request: the mode "navigate" is not allowed.');
  }
  if (init.credentials !== undefined) {
    options.credentials = toEnum(init.credentials, CREDENTIALS, "Request: credentials");
  }
  if (init.cache !== undefined) options.cache = toEnum(init.cache, CACHES, "Request: cache");
  if (options.cache === "only-if-cached" && options.mode !== "same-origin") {
    throw new TypeError('Request: the cache mode "only-if-cached" needs the mode "same-origin".');
  }
  if (init.redirect !== undefined) options.redirect = toEnum(init.redirect, REDIRECTS, "Request: redirect");
  if (init.integrity !== undefined) options.integrity = toDOMString(init.integrity);
  if (init.keepalive !== undefined) options.keepalive = !!init.keepalive;
  if (init.priority !== undefined) toEnum(init.priority, ["high", "low", "auto"], "Request: priority");
  return options;
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 26 to 29. */
function readSignal(state, init, input) {
  const { signal } = init;
  if (signal !== undefined && signal !== null) {
    if (!isAbortSignal(signal)) throw new TypeError("Request: signal is not an AbortSignal.");
    state.signal = createDependentSignal([signal]);
  } else if (input !== null && signal === undefined) {
    state.makeSignal = () => createDependentSignal([signalOf(input)]);
  }
}

/** https://fetch.spec.whatwg.org/#dom-request, steps 34 to 41. */
function readBody(state, init, input) {
  const { body } = init;
  const inputBody = input === null ? null : input.body;
  const isBody = body !== undefined && body !== null;
  // Step 35.
  if ((isBody || inputBody !== null) && (state.method === "GET" || state.method === "HEAD")) {
    throw new TypeError(`Request: a ${state.method} request cannot have a body.`);
  }
  if (isBody) {
    // Steps 37 and 39.
    if (init.duplex !== undefined) toEnum(init.duplex, ["half"], "Request: duplex");
    if (isReadableStream(body) && init.duplex === undefined) {
      throw new TypeError('Request: a body that is a stream needs duplex: "half".');
    }
    if (init.keepalive && isReadableStream(body)) throw new TypeError("Request: keepalive excludes a stream as body.");
    state.body = extractBody(body);
    const type = typeOfBody(body);
    if (type !== null && !state.list.has("content-type")) state.list.append("content-type", type);
  } else if (inputBody !== null) {
    // Steps 40 and 41.
    if (isUnusable(inputBody)) throw new TypeError("Request: the body of the given request has already been used.");
    state.body = moveBody(inputBody);
  }
}

/** https://fetch.spec.whatwg.org/#dom-request */
function initialize(state, input, init) {
  // Steps 5 and 6.
  const given = requestState(input);
  state.url = given === undefined ? toRequestURL(input) : urlOf(given);
  if (given !== undefined) {
    state.method = methodOf(given);
    state.options = given.options;
  } else state.method = "GET";
  // Steps 12 to 24.
  if (init !== EMPTY) state.options = readOptions(state, init);
  // Step 25.
  if (init.method !== undefined) state.method = toMethod(init.method);
  readSignal(state, init, given ?? null);
  // Steps 31 to 33.
  if (init.headers !== undefined) fillHeaders((state.list = new HeaderList()), init.headers);
  else state.list = given === undefined ? new HeaderList() : listOf(given).copy();
  readBody(state, init, given ?? null);
}

const EMPTY = Object.freeze({});

export class Request {
  #state;

  constructor(input, init = undefined) {
    if (input === INTERNAL) {
      this.#state = init;
      return;
    }
    requireArguments(arguments.length, 1, "Request constructor");
    const state = new RequestState();
    initialize(state, input, init === undefined ? EMPTY : toDictionary(init, "Request"));
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

  get signal() {
    return signalOf(this.#state);
  }

  get duplex() {
    this.#state;
    return "half";
  }

  get body() {
    const { body } = this.#state;
    return body === null ? null : streamOf(body);
  }

  get bodyUsed() {
    return isUsed(this.#state.body);
  }

  /** https://fetch.spec.whatwg.org/#dom-request-clone */
  clone() {
    const state = this.#state;
    if (isUnusable(state.body)) throw new TypeError("Request.clone: the body has already been used.");
    const copy = new RequestState();
    copy.method = methodOf(state);
    copy.url = urlOf(state);
    copy.list = listOf(state).copy();
    copy.guard = state.guard;
    copy.options = state.options;
    copy.makeSignal = () => createDependentSignal([signalOf(state)]);
    copy.body = state.body === null ? null : cloneBody(state.body);
    return createRequest(copy);
  }

  async arrayBuffer() {
    return bodyArrayBuffer(this.#state.body);
  }

  async bytes() {
    return bodyBytes(this.#state.body);
  }

  async json() {
    return bodyJson(this.#state.body);
  }

  async text() {
    return bodyText(this.#state.body);
  }

  static {
    isRequest = (value) => typeof value === "object" && value !== null && #state in value;
    requestState = (value) => (isRequest(value) ? value.#state : undefined);
    createRequest = (state) => new Request(INTERNAL, state);
  }
}

defineInterface(Request, {
  name: "Request",
  describe: ({ method, url, headers, redirect, bodyUsed }) => ({ method, url, headers, redirect, bodyUsed }),
});
