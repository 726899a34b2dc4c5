// The global object as an event target: `error` and `fetch` events, and uncaught exceptions.
import { ErrorEvent, Event, isDispatchable, trust } from "./event.js";
import { countListeners, fireEvent } from "./event_target.js";
import { DOMException } from "./exception.js";
import { setExceptionHandler } from "./report.js";
import { native } from "../internal/native.js";
import { inspect } from "../internal/show.js";
import { Level } from "../internal/wire.gen.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments } from "../internal/webidl.js";

let reportToEngine = (error) => native.log(Level.ERROR, `Uncaught ${inspect(error)}`);
let reporting = false; // keeps an `error` listener that throws from calling itself endlessly

/** Sets the function that receives uncaught exceptions that no `error` listener handled. The default writes them to the log. */
export function setErrorReporter(report) {
  reportToEngine = report;
}

// A frame of a stack trace in the worker's code: "at f (file:1:2)" or "at file:1:2".
const FRAME = /^\s+at (?:.*\()?((?!atoll:)[^()\s]+):(\d+):(\d+)\)?$/m;

/** https://html.spec.whatwg.org/multipage/webappapis.html#extract-error. Never throws, even if reading the value does. */
function describe(error) {
  let message = "Uncaught exception";
  let frame = null;
  try {
    message = error instanceof Error ? `Uncaught ${error.name}: ${error.message}` : `Uncaught ${inspect(error)}`;
    const stack = error instanceof Error ? error.stack : new Error().stack;
    frame = FRAME.exec(typeof stack === "string" ? stack : "");
  } catch {
    // The value cannot be read.
  }
  const [, filename = "", lineno = 0, colno = 0] = frame ?? [];
  return { message, filename, lineno: Number(lineno), colno: Number(colno) };
}

/** https://html.spec.whatwg.org/multipage/webappapis.html#report-an-exception */
function report(error) {
  if (!reporting && countListeners(globalThis, "error") > 0) {
    reporting = true;
    try {
      const event = new ErrorEvent("error", { ...describe(error), error, cancelable: true });
      if (!fireEvent(globalThis, event)) return;
    } finally {
      reporting = false;
    }
  }
  reportToEngine(error);
}

setExceptionHandler(report);

/** https://html.spec.whatwg.org/multipage/webappapis.html#dom-reporterror */
export function reportError(error) {
  requireArguments(arguments.length, 1, "reportError");
  report(error);
}

/** The number of listeners that the worker has for events of this type. */
export function globalListeners(type) {
  return countListeners(globalThis, type);
}

/**
 * Dispatches an event of the platform at the global object. `onError` receives what a listener throws; by default it is reported
 * like any uncaught exception. False if a listener canceled the event.
 */
export function dispatchGlobal(event, onError) {
  return fireEvent(globalThis, event, onError);
}

const OURS = Symbol("made by the platform");

// Set by the classes below.
export let createExtendableEvent;
let extending;
export let createFetchEvent;
export let responseOf;

/** https://w3c.github.io/ServiceWorker/#extendableevent-interface */
export class ExtendableEvent extends Event {
  #extend = null; // (promise) => void: extends the call of this event

  /** A worker can make none, as at Cloudflare: only an event of a call has something to extend. */
  constructor(token, type, init = undefined) {
    if (token !== OURS) throw new TypeError("Illegal constructor");
    super(type, init);
  }

  /** https://w3c.github.io/ServiceWorker/#wait-until-method */
  waitUntil(promise) {
    requireArguments(arguments.length, 1, "ExtendableEvent.waitUntil");
    if (this.#extend === null) throw new DOMException("The event belongs to no call.", "InvalidStateError");
    this.#extend(Promise.resolve(promise));
  }

  static {
    createExtendableEvent = (type, waitUntil, Class = ExtendableEvent) => extending(new Class(OURS, type), waitUntil);
    extending = (event, waitUntil) => {
      event.#extend = waitUntil;
      return trust(event);
    };
  }
}

defineInterface(ExtendableEvent, { name: "ExtendableEvent" });

/** https://w3c.github.io/ServiceWorker/#fetchevent-interface */
export class FetchEvent extends ExtendableEvent {
  #request;
  #response = undefined;
  #passThrough = null;
  #waits = true; // respondWith may be called once, while the event is dispatched

  constructor(token, request) {
    super(token, "fetch", { cancelable: true });
    this.#request = request;
  }

  get request() {
    return this.#request;
  }

  /** https://w3c.github.io/ServiceWorker/#fetch-event-respondwith */
  respondWith(response) {
    requireArguments(arguments.length, 1, "FetchEvent.respondWith");
    // Step 2.
    if (isDispatchable(this)) {
      throw new DOMException("respondWith must be called while the event is dispatched.", "InvalidStateError");
    }
    // Step 3.
    if (!this.#waits) throw new DOMException("respondWith was already called.", "InvalidStateError");
    // Steps 5 and 6.
    this.stopImmediatePropagation();
    this.#waits = false;
    this.#response = response;
  }

  /** Cloudflare's extension: if the handler throws, the request goes to the origin of the worker, if it has one. */
  passThroughOnException() {
    this.#passThrough?.();
  }

  static {
    createFetchEvent = (request, waitUntil, passThrough) => {
      const event = extending(new FetchEvent(OURS, request), waitUntil);
      event.#passThrough = passThrough;
      return event;
    };
    responseOf = (event) => event.#response;
  }
}

defineInterface(FetchEvent, { name: "FetchEvent", describe: ({ type, request }) => ({ type, request }) });
