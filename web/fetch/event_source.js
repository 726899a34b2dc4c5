// https://html.spec.whatwg.org/multipage/server-sent-events.html, with Cloudflare's additions:
// https://developers.cloudflare.com/workers/runtime-apis/eventsource/
import { fetch } from "#bindings/fetch/fetch.js";
import { AbortController } from "../dom/abort.js";
import { ErrorEvent, Event } from "../dom/event.js";
import { EventTarget, fireEvent, HandlerSlot } from "../dom/event_target.js";
import { DOMException } from "../dom/exception.js";
import { MessageEvent } from "../dom/message_event.js";
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { defineConstants, defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { requireArguments, toDictionary, toUSVString } from "../internal/webidl.js";
import { isReadableStream, readNext } from "../streams/streams.js";
import { clearTimeout, startTimer } from "../timers.js";
import { parseHref, URL } from "../url/url.js";
import { EventStreamParser } from "./event_stream.js";
import { parseMimeType } from "./mime_type.js";

const INTERNAL = Symbol("made by the platform");
const HANDLERS = ["open", "message", "error"];
const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 2;
const RECONNECTION_MS = 3000;
const BACKOFF_MS = 100; // doubles after each failed attempt
const MOST_BACKOFF_MS = 30_000; // and stays at this value

export class EventSource extends EventTarget {
  #state = CONNECTING;
  #url = "";
  #withCredentials = false;
  #get = fetch; // (url, init) -> promise of the response
  #connection = null; // AbortController of the current request
  #timer = 0; // timer of the next attempt
  #reconnectionMs = RECONNECTION_MS;
  #failures = 0; // failed attempts since it was last open
  #lastEventId = "";
  #handlers = null;

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#dom-eventsource */
  constructor(url, options = undefined) {
    super();
    if (url === INTERNAL) return;
    requireArguments(arguments.length, 1, "EventSource constructor");
    const text = toUSVString(url);
    const { fetcher, withCredentials } = toDictionary(options, "EventSource constructor");
    // Steps 3 and 4. A worker has no base URL unless its code defines `location`.
    const href = parseHref(text) ?? parseHref(text, `${globalThis.location?.href}`);
    if (href === undefined) throw new DOMException(`Cannot open an EventSource to '${text.slice(0, 100)}'. The URL is invalid.`, "SyntaxError");
    if (callOf(native.getAsyncContext()) === undefined) {
      throw new Error("Disallowed operation called within global scope: an EventSource can be opened only while a request is handled.");
    }
    this.#url = href;
    this.#withCredentials = !!withCredentials;
    if (fetcher !== undefined && fetcher !== null) this.#get = (...request) => fetcher.fetch(...request);
    this.#connect();
  }

  /** Cloudflare's extension: reads events from an existing stream, such as the body of a response. */
  static from(stream) {
    requireArguments(arguments.length, 1, "EventSource.from");
    if (!isReadableStream(stream)) throw new TypeError("EventSource.from: the argument is not a ReadableStream.");
    const reader = stream.getReader();
    const source = new this(INTERNAL);
    source.#connection = new AbortController();
    source.#state = OPEN;
    source.#connection.signal.addEventListener("abort", () => reader.cancel().catch(() => {}));
    source.#readAll(reader, "", source.#connection).then(
      () => source.#fail("the stream has ended"),
      (error) => source.#fail(error?.message ?? `${error}`),
    );
    return source;
  }

  get url() {
    return this.#url;
  }

  get withCredentials() {
    return this.#withCredentials;
  }

  get readyState() {
    return this.#state;
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#dom-eventsource-close */
  close() {
    this.#state = CLOSED;
    clearTimeout(this.#timer);
    this.#connection?.abort();
  }

  /** For `using`, as Node has it. */
  [Symbol.dispose]() {
    this.close();
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#dom-eventsource, steps 8 to 15. */
  #connect() {
    const connection = (this.#connection = new AbortController());
    const headers = { accept: "text/event-stream", "cache-control": "no-cache" };
    if (this.#lastEventId !== "") headers["last-event-id"] = asBytes(this.#lastEventId);
    const init = { headers, signal: connection.signal, credentials: this.#withCredentials ? "include" : "same-origin" };
    new Promise((resolve) => resolve(this.#get(this.#url, init)))
      .then((response) => {
        const refusal = refusalOf(response);
        if (refusal !== null) {
          connection.abort();
          this.#fail(refusal);
          return undefined;
        }
        const origin = new URL(response.url === "" ? this.#url : response.url).origin;
        return this.#readAll(response.body.getReader(), origin, connection).then(() => this.#reestablish("the connection has ended"));
      })
      .catch((error) => this.#reestablish(error?.message ?? `${error}`));
  }

  async #readAll(reader, origin, connection) {
    const parser = new EventStreamParser(this.#lastEventId, {
      onEvent: ({ type, data, lastEventId }) => {
        this.#lastEventId = lastEventId;
        if (this.#state !== CLOSED) fireEvent(this, new MessageEvent(type, { data, origin, lastEventId }));
      },
      onRetry: (ms) => (this.#reconnectionMs = ms),
    });
    // https://html.spec.whatwg.org/multipage/server-sent-events.html#announce-the-connection, after the caller can add listeners.
    await null;
    if (this.#state === CLOSED) return;
    this.#state = OPEN;
    this.#failures = 0;
    fireEvent(this, new Event("open"));
    while (!connection.signal.aborted) {
      const bytes = await readNext(reader);
      if (bytes === null) return;
      parser.write(bytes);
      this.#lastEventId = parser.lastEventId;
    }
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#reestablish-the-connection */
  #reestablish(why) {
    if (this.#state === CLOSED) return;
    this.#state = CONNECTING;
    this.#connection.abort(); // if anything of it is left
    this.#tellError(why);
    if (this.#state !== CONNECTING) return;
    // A server that is down may not have named a retry time.
    const more = this.#failures === 0 ? 0 : Math.min(BACKOFF_MS * 2 ** this.#failures, MOST_BACKOFF_MS);
    this.#failures++;
    this.#timer = startTimer(() => this.#connect(), Math.max(this.#reconnectionMs, more));
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#fail-the-connection */
  #fail(why) {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    this.#tellError(why);
  }

  #tellError(why) {
    const message = `EventSource: ${why}`;
    fireEvent(this, new ErrorEvent("error", { message, error: new Error(message) }));
  }

  static {
    for (const type of HANDLERS) {
      const accessors = {
        get [`on${type}`]() {
          return this.#handlers?.[type].get() ?? null;
        },
        set [`on${type}`](handler) {
          this.#handlers ??= Object.fromEntries(HANDLERS.map((each) => [each, new HandlerSlot(each)]));
          this.#handlers[type].set(this, handler);
        },
      };
      Object.defineProperties(EventSource.prototype, Object.getOwnPropertyDescriptors(accessors));
    }
  }
}

defineInterface(EventSource, { name: "EventSource" });
defineConstants(EventSource, { CONNECTING, OPEN, CLOSED });

/** The reason why a response is not an event stream; null if it is one. */
function refusalOf({ status, headers, body }) {
  if (status !== 200) return `the server answered with the status ${status} instead of 200`;
  if (parseMimeType(headers.get("content-type") ?? "")?.essence !== "text/event-stream") {
    return "the response is not of type text/event-stream";
  }
  return body === null ? "the response has no body" : null;
}

/** A header value has bytes; this one has those of UTF-8. */
function asBytes(text) {
  return Array.from(encodeText(text), (byte) => String.fromCharCode(byte)).join("");
}
