// https://dom.spec.whatwg.org/#interface-eventtarget
//
// There is no tree of nodes, so a dispatch calls one list of listeners. The global object is an event target too, but it is not an
// instance of a class of the platform and cannot have private fields. Its listeners are in `globalListenerLists`.
import {
  beginDispatch, distrust, endDispatch, ErrorEvent, Event, isDispatchable, isPropagationStopped, isStopped, setPassive, trust,
} from "./event.js";
import { DOMException } from "./exception.js";
import { reportException } from "./report.js";
import { defineInterface } from "../internal/platform.js";
import { NO_OPTIONS, requireArguments, toDOMString, wrongArgument, wrongMember } from "../internal/webidl.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";

const globalListenerLists = new Map(); // type -> listeners

let listsOf; // (target) -> Map of type -> listeners
let signals = null; // { isAbortSignal, addAbortAlgorithm, removeAbortAlgorithm }, set by abort.js, which depends on this file

let observables = null; // loads the module of Observable, which few workers use

export function setObservables(load) {
  observables = load;
}

export function setSignals(functions) {
  signals = functions;
}

/** https://dom.spec.whatwg.org/#concept-flatten-options */
function isCapture(options) {
  return isObject(options) ? !!options.capture : !!options;
}

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** https://dom.spec.whatwg.org/#event-flatten-more: the members in the order in which Web IDL reads them. */
function flattenMore(options) {
  const capture = isCapture(options);
  if (!isObject(options)) return { capture, once: false, passive: false, signal: undefined };
  const { once, passive, signal } = options;
  if (signal !== undefined && !signals.isAbortSignal(signal)) {
    throw wrongMember("signal", "AddEventListenerOptions", "AbortSignal");
  }
  return { capture, once: !!once, passive: !!passive, signal };
}

function toCallback(value) {
  if (value === undefined || value === null) return null;
  if (typeof value === "object" || typeof value === "function") return value;
  throw wrongArgument("EventTarget.addEventListener", 1, "function or HandlerObject");
}

function indexOfListener(listeners, callback, capture) {
  return listeners.findIndex((listener) => listener.callback === callback && listener.capture === capture);
}

/** https://dom.spec.whatwg.org/#add-an-event-listener */
function addListener(lists, type, listener) {
  const { callback, capture, signal } = listener;
  // Step 2 and 3.
  if (signal?.aborted || callback === null) return;
  // Step 5.
  let listeners = lists.get(type);
  if (listeners === undefined) lists.set(type, (listeners = []));
  if (indexOfListener(listeners, callback, capture) !== -1) return;
  listeners.push(listener);
  // Step 6.
  if (signal === undefined) return;
  listener.onAbort = () => removeListener(lists, type, callback, capture);
  signals.addAbortAlgorithm(signal, listener.onAbort);
}

/** https://dom.spec.whatwg.org/#remove-an-event-listener */
function removeListener(lists, type, callback, capture) {
  const listeners = lists.get(type);
  if (listeners === undefined) return;
  const index = indexOfListener(listeners, callback, capture);
  if (index === -1) return;
  const [listener] = listeners.splice(index, 1);
  listener.removed = true;
  if (listener.onAbort !== undefined) signals.removeAbortAlgorithm(listener.signal, listener.onAbort);
  if (listeners.length === 0) lists.delete(type);
}

let setsThis = true; // of a listener
let reportsExceptions = true; // of listeners; before 2026-09-15 dispatchEvent() threw the first
whenFlagsAreSet(() => {
  setsThis = isOn("set_event_target_this");
  reportsExceptions = isOn("spec_compliant_dispatch_exceptions");
});

/** https://dom.spec.whatwg.org/#concept-event-listener-inner-invoke, for one listener. */
function invoke(listener, event, target, onError) {
  const { callback } = listener;
  setPassive(event, listener.passive);
  try {
    if (typeof callback === "function") callback.call(setsThis ? target : undefined, event);
    else {
      const { handleEvent } = callback;
      if (typeof handleEvent !== "function") throw new TypeError("EventTarget: handleEvent is not a function.");
      handleEvent.call(callback, event);
    }
  } catch (error) {
    onError(error);
  }
  setPassive(event, false);
}

/** https://dom.spec.whatwg.org/#concept-event-dispatch. False if a listener canceled the event. */
function dispatch(lists, event, target, onError) {
  beginDispatch(event, target);
  // The capturing phase, then the bubbling phase. The target is the whole path.
  invokeAll(lists, event, target, onError, true);
  invokeAll(lists, event, target, onError, false);
  return endDispatch(event);
}

function dispatchThrowing(lists, event, target) {
  let first = null;
  const result = dispatch(lists, event, target, (error) => {
    first ??= { error };
  });
  if (first !== null) throw first.error;
  return result;
}

/** https://dom.spec.whatwg.org/#concept-event-listener-invoke */
function invokeAll(lists, event, target, onError, capture) {
  // Step 5.
  if (isPropagationStopped(event)) return;
  const listeners = lists.get(event.type);
  if (listeners === undefined) return;
  // Step 7: a copy, because listeners may add and remove listeners.
  for (const listener of listeners.filter((each) => each.capture === capture)) {
    if (listener.removed) continue;
    if (listener.once) removeListener(lists, event.type, listener.callback, capture);
    invoke(listener, event, target, onError);
    if (isStopped(event)) return;
  }
}

export class EventTarget {
  #lists = new Map();

  /** https://dom.spec.whatwg.org/#dom-eventtarget-addeventlistener */
  addEventListener(type, callback, options = undefined) {
    requireArguments(arguments.length, 2, "EventTarget.addEventListener", "string", "function or HandlerObject");
    const lists = listsOf(this);
    const name = toDOMString(type);
    const listener = toCallback(callback);
    addListener(lists, name, { callback: listener, ...flattenMore(options), removed: false });
  }

  /** https://dom.spec.whatwg.org/#dom-eventtarget-removeeventlistener */
  removeEventListener(type, callback, options = undefined) {
    requireArguments(arguments.length, 2, "EventTarget.removeEventListener");
    removeListener(listsOf(this), toDOMString(type), toCallback(callback), isCapture(options));
  }

  /** https://dom.spec.whatwg.org/#dom-eventtarget-dispatchevent */
  dispatchEvent(event) {
    requireArguments(arguments.length, 1, "EventTarget.dispatchEvent");
    const lists = listsOf(this);
    if (!(event instanceof Event)) throw wrongArgument("EventTarget.dispatchEvent", 0, "Event");
    // Step 1.
    if (!isDispatchable(event)) throw new DOMException("The event is already being dispatched.", "InvalidStateError");
    // Steps 2 and 3.
    distrust(event);
    return reportsExceptions ? dispatch(lists, event, this ?? globalThis, reportException) : dispatchThrowing(lists, event, this ?? globalThis);
  }

  /** https://wicg.github.io/observable/#dom-eventtarget-when */
  when(type, options = undefined) {
    requireArguments(arguments.length, 1, "EventTarget.when");
    const lists = listsOf(this);
    const name = toDOMString(type);
    const { capture, passive } = flattenMore(options ?? NO_OPTIONS);
    return observables().observeEvents((callback, signal) =>
      addListener(lists, name, { callback, capture, passive, once: false, signal, removed: false }));
  }

  static {
    // Called without an object, a method applies to the global object: `addEventListener("fetch", …)`.
    listsOf = (target) => {
      if (target === undefined || target === null || target === globalThis) return globalListenerLists;
      return target.#lists;
    };
  }
}

defineInterface(EventTarget, { describe: () => ({}) });

/** https://dom.spec.whatwg.org/#concept-event-fire: dispatches an event of the platform. */
export function fireEvent(target, event, onError = reportException) {
  return dispatch(listsOf(target), trust(event), target, onError);
}

/** The number of listeners that a target has for an event. */
export function countListeners(target, type) {
  return listsOf(target).get(type)?.length ?? 0;
}

/** The callbacks that a target has for an event, for node:events. */
export function listenersOf(target, type) {
  return (listsOf(target)?.get(type) ?? []).map((listener) => listener.callback);
}

/**
 * An event handler attribute such as `onabort`: one listener that keeps its position when the handler changes.
 * https://html.spec.whatwg.org/multipage/webappapis.html#event-handler-idl-attributes
 */
export class HandlerSlot {
  #type;
  #handler = null;
  #listener = null;

  constructor(type) {
    this.#type = type;
  }

  get() {
    return this.#handler;
  }

  set(target, value) {
    this.#handler = typeof value === "function" || (typeof value === "object" && value !== null) ? value : null;
    if (this.#handler === null) {
      if (this.#listener !== null) target.removeEventListener(this.#type, this.#listener);
      this.#listener = null;
    } else if (this.#listener === null) {
      this.#listener = (event) => {
        if (typeof this.#handler !== "function") return;
        // https://html.spec.whatwg.org/multipage/webappapis.html#the-event-handler-processing-algorithm
        const isError = target === globalThis && event instanceof ErrorEvent && event.type === "error";
        const { message, filename, lineno, colno, error } = isError ? event : {};
        const result = isError
          ? this.#handler.call(target, message, filename, lineno, colno, error)
          : this.#handler.call(target, event);
        if (result === isError) event.preventDefault();
      };
      target.addEventListener(this.#type, this.#listener);
    }
  }
}
