// https://fetch.spec.whatwg.org/#fetch-method. The half that touches the network is ops.py: it sends one request and returns
// its response. The parts that the standard describes are here: redirects, aborting, bodies as streams.
import { addAbortAlgorithm, removeAbortAlgorithm } from "#web/dom/abort.js";
import { takeBody } from "#web/fetch/body.js";
import { fetchDataURL } from "#web/fetch/data_url.js";
import { HeaderList } from "#web/fetch/header_list.js";
import { cfOfHead, listOf, Request, requestState } from "#web/fetch/request.js";
import { makeResponse, NULL_BODY_STATUS } from "#web/fetch/response.js";
import { lazy } from "#web/internal/lazy.js";
import { defineOp } from "#web/internal/ops.js";
import { encodeText } from "#web/internal/text.js";
import { requireArguments } from "#web/internal/webidl.js";
import { lengthOfStream } from "#web/streams/lengths.js";
import { isReadableStream } from "#web/streams/streams.js";
import { parseHref, URL } from "#web/url/url.js";
import { sourceOfStream } from "#web/worker/bodies.js";
import { isOn, whenFlagsAreSet } from "#web/worker/compatibility.js";
import { FetchedBody, read } from "./fetched_body.js";
import { startInside } from "./inside.js";

const start = defineOp("fetch.start");
const write = defineOp("fetch.write");
const handOver = defineOp("fetch.hand_over");

const INLINE = 1 << 20; // bytes: a body up to this size is sent with the request, and can be sent again after a redirect
const MOST_CF = 16 << 10; // characters
const PIECE = 128 * 1024;
const MOST_REDIRECTS = 20; // https://fetch.spec.whatwg.org/#http-redirect-fetch, step 7
const REDIRECTS = [301, 302, 303, 307, 308];
const ABOUT_BODY = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];
const SECRETS = ["authorization", "cookie", "proxy-authorization"];

let last = 0; // the number of the latest fetch

/** One call of fetch(), with all its redirects. */
class Fetch {
  constructor(state, service, object) {
    this.service = service; // the name of the binding that answers instead of the network
    this.object = object; // { id, name, onThrown } of the Durable Object that does, if the binding is a namespace
    this.method = state.method;
    this.url = targetOf(state.url);
    this.list = state.options.cache === "default" || service !== undefined ? state.list : withCacheMode(state);
    this.upgrade = isUpgrade(state) || undefined; // it asks for a WebSocket
    this.redirect = state.options.redirect;
    this.cf = service === undefined ? cacheOptions(state) : undefined;
    this.told = service === undefined ? undefined : cfToTell(state); // request.cf of the worker that is called
    this.redirects = 0;
    this.bytes = null; // the request body, if it is complete,
    this.source = null; // or its source
    this.length = undefined;
    this.number = 0; // of the request in progress
    this.body = null; // FetchedBody of the response
    this.failure = null; // { error }: it was aborted, or the request body broke
    this.reject = null;
    this.#takeBody(state);
  }

  #takeBody(state) {
    const body = takeBody(state.body);
    if (body === null) return;
    if (typeof body === "string") this.bytes = encodeText(body);
    else if (body instanceof Uint8Array) this.bytes = body;
    else {
      this.source = isReadableStream(body) ? sourceOfStream(body) : body;
      const declared = this.list.get("content-length");
      if (isReadableStream(body)) this.length = lengthOfStream(body);
      if (this.length === undefined && declared !== null && /^\d{1,15}$/.test(declared)) this.length = Number(declared);
    }
  }

  /** Ends the fetch in any state. */
  abort(error) {
    if (this.failure !== null) return;
    this.failure = { error };
    this.source?.cancel(error);
    if (this.body !== null) this.body.abort(error);
    else if (this.number !== 0) FetchedBody.drop(this.number);
    this.reject?.(error);
  }

  async run() {
    for (;;) {
      const { meta, body } = await this.#send();
      if (this.failure !== null) throw this.failure.error;
      if (meta.thrown !== undefined) {
        const error = lazy("worker/thrown.js").makeThrown(meta.thrown);
        this.object?.onThrown?.(error);
        throw error;
      }
      const list = HeaderList.fromText(`\n${meta.head}`, 1);
      const location = REDIRECTS.includes(meta.status) && this.redirect !== "manual" ? list.get("location") : null;
      if (location === null) return this.#respond(meta, list, body);
      if (!meta.ended) FetchedBody.drop(this.number);
      this.#follow(meta.status, location);
    }
  }

  #send() {
    this.number = ++last;
    const { method, url, number, service, object, told } = this;
    const { pairs } = this.list;
    let head = "";
    for (let i = 0; i < pairs.length; i += 2) head += `${pairs[i]}: ${pairs[i + 1]}\r\n`;
    const streamed = this.source !== null || (this.bytes !== null && this.bytes.length > INLINE);
    if (this.upgrade) return start({ fetch: number, method, url, head, service, object, told, upgrade: true });
    const meta = { fetch: number, method, url, head, service, object, told, cf: this.cf };
    if (!streamed && service !== undefined && this.cf === undefined) {
      return startInside(start, meta, pairs, this.bytes, object === undefined ? service : `${service} ${object.id}`);
    }
    if (!streamed) return start(meta, this.bytes);
    const length = this.source === null ? this.bytes.length : this.length;
    const answer = start({ fetch: number, method, url, head, service, object, told, streamed, length });
    this.#pump(number).catch((error) => this.abort(error));
    return answer;
  }

  /** Sends the request body in pieces; the reply to each says that there is room for the next. */
  async #pump(number) {
    const { bytes, source } = this;
    if (source === null) {
      if (await this.#write(number, bytes)) await write({ fetch: number, ended: true }).catch(() => {});
      return;
    }
    for (;;) {
      const chunk = await source.read();
      if (this.failure !== null) return;
      if (chunk === null) break;
      if (!(await this.#write(number, chunk))) {
        source.cancel();
        return;
      }
    }
    await write({ fetch: number, ended: true }).catch(() => {});
  }

  async #write(number, bytes) {
    for (let at = 0; at < bytes.length; at += PIECE) {
      // The reply to the request itself has the reason.
      const more = await write({ fetch: number, ended: false }, bytes.subarray(at, at + PIECE)).then(
        ({ meta }) => meta.more,
        () => false,
      );
      if (!more || this.failure !== null) return false;
    }
    return true;
  }

  /** https://fetch.spec.whatwg.org/#concept-http-redirect-fetch */
  #follow(status, location) {
    if (this.redirect === "error") throw new TypeError(`fetch: ${this.url} redirects, and the request has redirect: "error".`);
    // Servers send raw UTF-8; a header value is a string of bytes.
    const escaped = location.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
    const next = parseHref(escaped, this.url);
    if (next === undefined || !/^https?:/.test(next)) {
      throw new TypeError(`fetch: ${this.url} redirects to a URL that is neither http nor https.`);
    }
    if (++this.redirects > MOST_REDIRECTS) throw new TypeError(`fetch: more than ${MOST_REDIRECTS} redirects.`);
    if (status !== 303 && this.source !== null) {
      throw new TypeError("fetch: the server redirects, and a body that is a stream cannot be sent again.");
    }
    if ((status === 303 && this.method !== "GET" && this.method !== "HEAD") || (status < 303 && this.method === "POST")) {
      this.method = "GET";
      this.bytes = this.source = null;
      this.list = this.list.copy();
      for (const name of ABOUT_BODY) this.list.delete(name);
    }
    if (new URL(next).origin !== new URL(this.url).origin) {
      this.list = this.list.copy();
      for (const name of SECRETS) if (stripsSecrets || name !== "authorization") this.list.delete(name);
    }
    this.url = targetOf(next);
  }

  #socket(meta, list) {
    const ops = { read, write, handOver };
    return lazy("sockets/client_port.js").socketOfFetch(ops, this.number, this.url, list, meta.held === true);
  }

  #respond(meta, list, first) {
    // https://fetch.spec.whatwg.org/#concept-main-fetch, step 20
    const isSocket = meta.status === 101;
    list.undone = meta.coding;
    const isEmpty = this.method === "HEAD" || NULL_BODY_STATUS.includes(meta.status);
    if (!meta.ended && !isEmpty) this.body = new FetchedBody(this.number, first, meta.coding, list.get("content-length"));
    else if (!meta.ended && !isSocket) FetchedBody.drop(this.number);
    return makeResponse({
      status: meta.status,
      statusText: meta.reason,
      list,
      url: this.url,
      redirected: this.redirects > 0,
      source: isEmpty || isSocket ? null : (this.body ?? first),
      webSocket: isSocket ? this.#socket(meta, list) : null,
    });
  }
}

/** https://developers.cloudflare.com/workers/examples/websockets/#write-a-websocket-client */
function isUpgrade({ method, list, body }) {
  return method === "GET" && body === null && list.get("upgrade")?.toLowerCase() === "websocket";
}

/** request.cf as the worker behind a binding gets it; undefined if that would find nothing more than it finds in the headers. */
function cfToTell(state) {
  const cf = state.options.cf ?? cfOfHead(state);
  if (cf === undefined) return undefined;
  // A header line has no other characters than these.
  const text = JSON.stringify(cf)?.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (text === undefined || !text.startsWith("{")) return undefined;
  if (text.length > MOST_CF) throw new TypeError(`fetch: \`cf\` is longer than ${MOST_CF} characters as JSON.`);
  return text;
}

/** The cache options in `cf`: https://developers.cloudflare.com/workers/runtime-apis/request/#the-cf-property-requestinitcfproperties */
function cacheOptions({ method, options: { cache, cf } }) {
  if (cf === undefined || cf === null || method !== "GET" || cache === "no-store") return undefined;
  const { cacheEverything, cacheKey, cacheTtl, cacheTtlByStatus } = cf;
  return { cacheEverything, cacheKey, cacheTtl, cacheTtlByStatus };
}

/** https://fetch.spec.whatwg.org/#concept-http-network-or-cache-fetch, steps 8.17 and 8.18: headers for caches on the way. */
function withCacheMode({ list, options: { cache } }) {
  const told = list.copy();
  const add = (name, value) => told.get(name) === null && told.append(name, value);
  if (cache === "no-cache") add("cache-control", "max-age=0");
  if (cache === "no-store" || cache === "reload") {
    add("pragma", "no-cache");
    add("cache-control", "no-cache");
  }
  return told;
}

let refusesSchemes = true;
let hasPorts = true;
let stripsSecrets = true;
whenFlagsAreSet(() => {
  refusesSchemes = isOn("fetch_refuses_unknown_protocols");
  hasPorts = isOn("allow_custom_ports");
  stripsSecrets = isOn("strip_authorization_on_cross_origin_redirect");
});

const CREDENTIALS = /^(https?:\/\/)[^/?#]*@/;
const PORT = /^(https?:\/\/(?:\[[^\]]*\]|[^/?#:]*)):\d+/;

/** The URL that a request is sent to: without its fragment, and without a user name and password, which HTTP does not send. */
function targetOf(url) {
  const at = url.indexOf("#");
  const target = (at === -1 ? url : url.slice(0, at)).replace(CREDENTIALS, "$1");
  return hasPorts ? target : target.replace(PORT, "$1");
}

/** https://fetch.spec.whatwg.org/#dom-global-fetch */
export function fetch(input, init = undefined) {
  try {
    requireArguments(arguments.length, 1, "fetch", "Request or string");
  } catch (error) {
    return Promise.reject(error);
  }
  return fetchFrom(undefined, input, init);
}

/** The same, through the binding of that name: a service, or a Durable Object. */
export function fetchFrom(service, input, init, object = undefined) {
  try {
    return begin(requestState(new Request(input, init)), service, object);
  } catch (error) {
    return Promise.reject(error);
  }
}

function begin(state, service, object) {
  const { signal } = state;
  if (signal !== null && signal.aborted) {
    state.body?.stream?.cancel(signal.reason).catch(() => {});
    throw signal.reason;
  }
  listOf(state);
  if (/^wss?:/.test(state.url) && isUpgrade(state)) state.url = state.url.replace(/^ws/, "http");
  const { cache, integrity } = state.options;
  // https://fetch.spec.whatwg.org/#concept-http-network-or-cache-fetch, step 10.1, without a cache of that kind.
  if (cache === "only-if-cached") throw new TypeError('fetch: the response is not cached, and the request has cache: "only-if-cached".');
  const ttl = state.options.cf?.cacheTtl;
  if (cache === "no-store" && ttl !== undefined && ttl !== null && ttl !== -1) {
    throw new TypeError(`CacheTtl: ${ttl}, is not compatible with cache: no-store header.`);
  }
  const answer = answerTo(state, service, object);
  return integrity === "" ? answer : lazy("fetch/integrity.js").verified(answer, integrity);
}

function answerTo(state, service, object) {
  const { signal, url } = state;
  if (service === undefined && url.startsWith("data:")) return Promise.resolve(fetchDataURL(url, state.method));
  if (service === undefined && url.startsWith("blob:")) {
    const { list, method, options } = state;
    return Promise.resolve(lazy("file/object_url.js").fetchBlobURL(url, options.blob, method, list.get("range")));
  }
  if (!/^https?:/.test(url)) {
    if (refusesSchemes || !/^[^:]+:\/\//.test(url)) throw new TypeError(`Fetch API cannot load: ${url.slice(0, 100)}`);
    state.url = url.replace(/^[^:]+/, "http");
  }
  const task = new Fetch(state, service, object);
  if (signal === null && task.source === null) return task.run();
  // The signal may end the fetch before its response.
  return new Promise((resolve, reject) => {
    task.reject = reject;
    const abort = (reason) => task.abort(reason);
    // A signal may outlive many fetches and keeps a reference to those it can still abort.
    const leave = () => signal !== null && removeAbortAlgorithm(signal, abort);
    if (signal !== null) addAbortAlgorithm(signal, abort);
    task.run().then(
      (response) => {
        if (task.body === null) leave();
        else task.body.onEnd = leave;
        resolve(response);
      },
      (error) => {
        leave();
        reject(task.failure === null ? error : task.failure.error);
      },
    );
  });
}
