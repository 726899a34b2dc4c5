// caches.default and caches.open(): https://developers.cloudflare.com/workers/runtime-apis/cache/. Python (http_cache.py)
// decides what is stored, for how long, and how ranges and conditions are answered.
import { lazy } from "#web/internal/lazy.js";
import { defineOp } from "#web/internal/ops.js";
import { encodeText } from "#web/internal/text.js";
import { defineInterface } from "#web/internal/platform.js";
import { illegalConstructor, requireArguments, toDOMString } from "#web/internal/webidl.js";
import { Body, isUnusable, takeBody } from "#web/fetch/body.js";
import { HeaderList } from "#web/fetch/header_list.js";
import { Request } from "#web/fetch/request.js";
import { headerList, isResponse, Response, responseState } from "#web/fetch/response.js";
import { isReadableStream } from "#web/streams/streams.js";
import { sourceOfBytes, sourceOfStream } from "#web/worker/bodies.js";

const match = defineOp("cache.match");
const read = defineOp("cache.read");
const put = defineOp("cache.put");
const write = defineOp("cache.write");
const remove = defineOp("cache.delete");

const OURS = Symbol("ours");
const DEFAULT = "default";
const LONGEST_NAME = 1024;
const MOST_AT_ONCE = 2 * 1024 * 1024; // bytes of a body in one op: Python's event loop is blocked while it copies them
const STATUS_TEXT = "status text: "; // begins the first line of a stored head; no header can have such a name

/** The key of a response: the URL without its fragment, or `cf.cacheKey`, and the headers it may vary by. */
function keyOf(input) {
  const request = input instanceof Request ? input : new Request(input);
  const { method, headers, cf } = request;
  const url = typeof cf?.cacheKey === "string" ? cf.cacheKey : request.url.split("#", 1)[0];
  let head = "";
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
  return { method, url, head };
}

/** The body of a hit: `first`, then the rest from Python. */
function sourceOf(first, reader) {
  let next = first;
  return {
    async read() {
      const piece = next;
      next = null;
      if (piece !== null && piece.length > 0) return piece;
      if (reader === undefined) return null;
      const { body } = await read({ reader });
      if (body.length > 0) return body;
      reader = undefined;
      return null;
    },
    cancel() {
      next = null;
      if (reader !== undefined) void read({ reader, cancel: true }).catch(() => {});
      reader = undefined;
    },
  };
}

function responseOf(url, meta, body) {
  const response = new Response(null, { status: meta.status });
  const state = responseState(response);
  let { head } = meta;
  if (head.startsWith(STATUS_TEXT)) {
    const end = head.indexOf("\r\n");
    if (meta.status !== 206 && meta.status !== 304) state.statusText = head.slice(STATUS_TEXT.length, end);
    head = head.slice(end + 2);
  }
  state.list = HeaderList.fromText(`\n${head}`, 1);
  state.guard = "immutable";
  state.url = url;
  if (meta.manual) state.encodeBody = "manual";
  const isEmpty = [204, 205, 304].includes(meta.status);
  if (!isEmpty) state.body = new Body(meta.reader === undefined ? body : sourceOf(body, meta.reader));
  return response;
}

function requireCacheable(method, response) {
  if (!isResponse(response)) throw new TypeError("Cache.put: the second argument is not a Response.");
  const state = responseState(response);
  if (method !== "GET") throw new TypeError("Cannot cache response to non-GET request.");
  if (state.status === 101) throw new TypeError("Cannot cache WebSocket upgrade response.");
  if (state.status === 206) throw new TypeError("Cannot cache response to a range request (206 Partial Content).");
  if (headerList(state).get("vary")?.split(",").some((name) => name.trim() === "*")) {
    throw new TypeError("Cannot cache response with 'Vary: *' header.");
  }
  if (isUnusable(state.body)) throw new TypeError("Cache.put: the body of the Response has already been used.");
  return state;
}

/** Sends a body piece by piece, until it ends or Python needs no more. */
async function send(upload, source) {
  try {
    for (;;) {
      const chunk = await source.read();
      const { meta } = await write({ upload, ended: chunk === null }, chunk);
      if (chunk === null) return;
      if (!meta.more) return source.cancel();
    }
  } catch (error) {
    await write({ upload, cancel: true }).catch(() => {});
    throw error;
  }
}

const REQUEST = "Request or string";

export class Cache {
  #name;

  constructor(key, name) {
    if (key !== OURS) throw illegalConstructor();
    this.#name = name;
  }

  /** https://w3c.github.io/ServiceWorker/#cache-match, of which only ignoreMethod has a meaning here. */
  async match(request, options = undefined) {
    requireArguments(arguments.length, 1, "Cache.match", REQUEST);
    const { method, url, head } = keyOf(request);
    if (method !== "GET" && !options?.ignoreMethod) return undefined;
    const { meta, body } = await match({ cache: this.#name, url, head });
    return meta.found ? responseOf(url, meta, body) : undefined;
  }

  /** https://w3c.github.io/ServiceWorker/#cache-put; resolves in any case, also if the response was not stored. */
  async put(request, response) {
    requireArguments(arguments.length, 2, "Cache.put", REQUEST, "Response");
    const { method, url, head } = keyOf(request);
    const state = requireCacheable(method, response);
    const list = headerList(state);
    const { pairs } = list.undone === "" ? list : lazy("fetch/content_coding.js").listAsRead(list);
    let reply = state.statusText === "" ? "" : `${STATUS_TEXT}${state.statusText}\r\n`;
    for (let i = 0; i < pairs.length; i += 2) reply += `${pairs[i]}: ${pairs[i + 1]}\r\n`;
    const taken = takeBody(state.body);
    const body = typeof taken === "string" ? encodeText(taken) : taken;
    const meta = { cache: this.#name, url, head, status: state.status, reply, manual: state.encodeBody === "manual" };
    const isBytes = body instanceof Uint8Array;
    if (body === null || (isBytes && body.length <= MOST_AT_ONCE)) {
      await put(meta, body);
      return;
    }
    const source = isBytes ? sourceOfBytes(body) : isReadableStream(body) ? sourceOfStream(body) : body;
    const { upload } = (await put({ ...meta, stream: true })).meta;
    if (upload === null) source.cancel();
    else await send(upload, source);
  }

  async delete(request, options = undefined) {
    requireArguments(arguments.length, 1, "Cache.delete", REQUEST);
    const { method, url } = keyOf(request);
    if (method !== "GET" && !options?.ignoreMethod) return false;
    const { meta } = await remove({ cache: this.#name, url });
    return meta.found;
  }
}

export class CacheStorage {
  #default;

  constructor(key) {
    if (key !== OURS) throw illegalConstructor();
    this.#default = new Cache(OURS, DEFAULT);
  }

  get default() {
    return this.#default;
  }

  async open(name) {
    requireArguments(arguments.length, 1, "CacheStorage.open");
    const text = toDOMString(name);
    if (text.length > LONGEST_NAME) throw new TypeError("Cache name is too long.");
    return new Cache(OURS, text);
  }
}

// Methods of the standard that Cloudflare has only to say that they are not there.
for (const [Class, names] of [[Cache, ["add", "addAll", "keys", "matchAll"]], [CacheStorage, ["delete", "has", "keys", "match"]]]) {
  for (const name of names) {
    const refuse = () => {
      throw new Error(`Failed to execute '${name}' on '${Class.name}': the method is not implemented.`);
    };
    Object.defineProperty(Class.prototype, name, {
      value: Object.defineProperty(refuse, "name", { value: name }), writable: true, enumerable: true, configurable: true,
    });
  }
}

defineInterface(Cache, { describe: () => ({}) });
defineInterface(CacheStorage, { describe: () => ({}) });

export const caches = new CacheStorage(OURS);
