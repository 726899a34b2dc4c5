// https://nodejs.org/api/events.html
import { isAbortSignal } from "../dom/abort.js";
import { EventTarget, listenersOf } from "../dom/event_target.js";
import { inspect } from "../internal/inspect.js";
import { lazy } from "../internal/lazy.js";
import { AbortError, codedError, invalidArgument, outOfRange, requireFunction } from "./errors.js";

export const errorMonitor = Symbol("events.errorMonitor");
export const captureRejectionSymbol = Symbol.for("nodejs.rejection");

let defaultMaxListeners = 10;

// The listeners of an emitter: event -> array of functions. A listener added by once() is a wrapper with the property `listener`.
const tables = new WeakMap();
const limits = new WeakMap();
const warned = new WeakMap(); // emitter -> Set of events for which a warning about many listeners was logged

function tableOf(emitter) {
  let table = tables.get(emitter);
  if (table === undefined) tables.set(emitter, (table = new Map()));
  return table;
}

function add(emitter, event, listener, atStart) {
  requireFunction(listener, "listener");
  const table = tableOf(emitter);
  if (table.has("newListener")) emitter.emit("newListener", event, listener.listener ?? listener);
  const before = table.get(event);
  // A new array each time, so that an emit in progress is not affected.
  const after = before === undefined ? [listener] : atStart ? [listener, ...before] : [...before, listener];
  table.set(event, after);
  warnOfMany(emitter, event, after.length);
  return emitter;
}

function warnOfMany(emitter, event, count) {
  const most = emitter.getMaxListeners();
  if (most === 0 || count <= most || warned.get(emitter)?.has(event)) return;
  if (!warned.has(emitter)) warned.set(emitter, new Set());
  warned.get(emitter).add(event);
  globalThis.console.warn(
    `MaxListenersExceededWarning: Possible EventEmitter memory leak detected. ${count} ${String(event)} listeners added to ${inspect(emitter, { depth: -1 })}. MaxListeners is ${most}. Use emitter.setMaxListeners() to increase limit`,
  );
}

function wrapOnce(emitter, event, listener) {
  requireFunction(listener, "listener");
  let fired = false;
  const wrapper = (...args) => {
    if (fired) return undefined;
    fired = true;
    emitter.removeListener(event, wrapper);
    return listener.apply(emitter, args);
  };
  wrapper.listener = listener;
  return wrapper;
}

// An `error` event without listeners is thrown.
function throwUnhandled(args) {
  const [error] = args;
  if (error instanceof Error) throw error;
  const thrown = codedError(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${inspect(error)})`);
  thrown.context = error;
  throw thrown;
}

function requireLimit(count, name) {
  if (typeof count !== "number" || Number.isNaN(count) || count < 0) throw outOfRange(name, ">= 0", count);
}

/** https://nodejs.org/api/events.html#class-eventemitter. A function, because older code calls it without `new`. */
export function EventEmitter(options = undefined) {
  if (options?.captureRejections) this[captureRejections] = true;
}

const captureRejections = Symbol("kCapture");

function watchRejection(emitter, result, event, args) {
  if (typeof result?.then !== "function") return;
  result.then(undefined, (error) => {
    const handler = emitter[captureRejectionSymbol];
    if (typeof handler === "function") handler.call(emitter, error, event, ...args);
    else emitter.emit("error", error);
  });
}

const methods = {
  addListener(event, listener) {
    return add(this, event, listener, false);
  },

  on(event, listener) {
    return add(this, event, listener, false);
  },

  prependListener(event, listener) {
    return add(this, event, listener, true);
  },

  once(event, listener) {
    return this.on(event, wrapOnce(this, event, listener));
  },

  prependOnceListener(event, listener) {
    return this.prependListener(event, wrapOnce(this, event, listener));
  },

  emit(event, ...args) {
    const table = tableOf(this);
    if (event === "error" && table.has(errorMonitor)) this.emit(errorMonitor, ...args);
    const listeners = table.get(event);
    if (listeners === undefined) {
      if (event === "error") throwUnhandled(args);
      return false;
    }
    for (const listener of listeners) {
      const result = listener.apply(this, args);
      if (this[captureRejections] && result !== undefined) watchRejection(this, result, event, args);
    }
    return true;
  },

  removeListener(event, listener) {
    requireFunction(listener, "listener");
    const table = tableOf(this);
    const listeners = table.get(event);
    if (listeners === undefined) return this;
    const index = listeners.findLastIndex((each) => each === listener || each.listener === listener);
    if (index === -1) return this;
    if (listeners.length === 1) table.delete(event);
    else table.set(event, listeners.toSpliced(index, 1));
    if (table.has("removeListener")) this.emit("removeListener", event, listener.listener ?? listener);
    return this;
  },

  off(event, listener) {
    return this.removeListener(event, listener);
  },

  removeAllListeners(...events) {
    const table = tableOf(this);
    if (table.has("removeListener")) {
      const all = events.length > 0 ? events : [...table.keys()].filter((event) => event !== "removeListener");
      for (const event of all) {
        for (const listener of (table.get(event) ?? []).toReversed()) this.removeListener(event, listener);
      }
    }
    if (events.length === 0) table.clear();
    else table.delete(events[0]);
    return this;
  },

  listeners(event) {
    return (tableOf(this).get(event) ?? []).map((listener) => listener.listener ?? listener);
  },

  rawListeners(event) {
    return [...(tableOf(this).get(event) ?? [])];
  },

  listenerCount(event, listener = undefined) {
    const listeners = tableOf(this).get(event) ?? [];
    if (listener === undefined) return listeners.length;
    return listeners.filter((each) => each === listener || each.listener === listener).length;
  },

  eventNames() {
    return [...tableOf(this).keys()];
  },

  setMaxListeners(count) {
    requireLimit(count, "setMaxListeners");
    limits.set(this, count);
    return this;
  },

  getMaxListeners() {
    return limits.get(this) ?? defaultMaxListeners;
  },
};

for (const [name, method] of Object.entries(methods)) {
  Object.defineProperty(EventEmitter.prototype, name, { value: method, writable: true, enumerable: true, configurable: true });
}

function requireSignal(signal) {
  if (signal !== undefined && !isAbortSignal(signal)) throw invalidArgument("options.signal", "an instance of AbortSignal", signal);
}

// Subscribes to an emitter of Node or an event target of the web.
function subscribe(target, event, listener, onlyOnce = false) {
  if (typeof target.on === "function") {
    if (onlyOnce) target.once(event, listener);
    else target.on(event, listener);
    return () => target.removeListener(event, listener);
  }
  if (typeof target.addEventListener !== "function") {
    throw invalidArgument("emitter", "an instance of EventEmitter", target);
  }
  target.addEventListener(event, listener, { once: onlyOnce });
  return () => target.removeEventListener(event, listener);
}

/** https://nodejs.org/api/events.html#eventsonceemitter-name-options */
export function once(emitter, event, options = {}) {
  return new Promise((resolve, reject) => {
    const { signal } = options;
    requireSignal(signal);
    if (signal?.aborted) throw new AbortError(signal);
    const undo = [];
    const finish = (settle) => (value) => {
      for (const each of undo) each();
      settle(value);
    };
    undo.push(subscribe(emitter, event, (...args) => finish(resolve)(args), true));
    if (event !== "error" && typeof emitter.once === "function") undo.push(subscribe(emitter, "error", finish(reject), true));
    if (signal !== undefined) undo.push(subscribe(signal, "abort", () => finish(reject)(new AbortError(signal)), true));
  });
}

/** https://nodejs.org/api/events.html#eventsonemitter-eventname-options */
export function on(emitter, event, options = {}) {
  const { signal, close = [] } = options;
  requireSignal(signal);
  if (signal?.aborted) throw new AbortError(signal);
  const queue = [];
  const waiting = [];
  const undo = [];
  let ended = false;
  let failure;
  const end = () => {
    ended = true;
    for (const each of undo) each();
    for (const { resolve } of waiting.splice(0)) resolve({ value: undefined, done: true });
  };
  const fail = (error) => {
    const reader = waiting.shift();
    if (reader === undefined) failure = { error };
    else reader.reject(error);
    end();
  };
  undo.push(subscribe(emitter, event, (...args) => {
    const reader = waiting.shift();
    if (reader === undefined) queue.push(args);
    else reader.resolve({ value: args, done: false });
  }));
  if (event !== "error" && typeof emitter.on === "function") undo.push(subscribe(emitter, "error", fail));
  for (const name of close) undo.push(subscribe(emitter, name, end));
  if (signal !== undefined) undo.push(subscribe(signal, "abort", () => fail(new AbortError(signal)), true));
  return {
    next() {
      if (queue.length > 0) return Promise.resolve({ value: queue.shift(), done: false });
      if (failure !== undefined) {
        const { error } = failure;
        failure = undefined;
        return Promise.reject(error);
      }
      if (ended) return Promise.resolve({ value: undefined, done: true });
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    return() {
      end();
      return Promise.resolve({ value: undefined, done: true });
    },
    throw(error) {
      fail(error);
      return Promise.resolve({ value: undefined, done: true });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

export function listenerCount(emitter, event) {
  return emitter.listenerCount(event);
}

function requireEmitter(emitter) {
  if (!(emitter instanceof EventTarget)) throw invalidArgument("emitter", "an instance of EventEmitter or EventTarget", emitter);
}

export function getEventListeners(emitter, event) {
  if (typeof emitter.listeners === "function") return emitter.listeners(event);
  requireEmitter(emitter);
  return listenersOf(emitter, event);
}

export function getMaxListeners(emitter) {
  if (typeof emitter?.getMaxListeners === "function") return emitter.getMaxListeners();
  requireEmitter(emitter);
  return limits.get(emitter) ?? defaultMaxListeners;
}

/** A hook of Node's own code. */
export function init() {}

export function setMaxListeners(count = defaultMaxListeners, ...emitters) {
  requireLimit(count, "n");
  if (emitters.length === 0) defaultMaxListeners = count;
  for (const emitter of emitters) {
    if (typeof emitter.setMaxListeners === "function") emitter.setMaxListeners(count);
    else if (emitter instanceof EventTarget) limits.set(emitter, count);
    else throw invalidArgument("eventTargets", "an instance of EventEmitter or EventTarget", emitter);
  }
}

/** https://nodejs.org/api/events.html#eventsaddabortlistenersignal-listener */
export function addAbortListener(signal, listener) {
  if (signal === undefined) throw invalidArgument("signal", "an instance of AbortSignal", signal);
  requireSignal(signal);
  requireFunction(listener, "listener");
  if (signal.aborted) {
    Promise.resolve().then(() => listener());
    return { [Symbol.for("nodejs.dispose")]() {} };
  }
  const stop = subscribe(signal, "abort", listener, true);
  return { [Symbol.for("nodejs.dispose")]: stop, ...(Symbol.dispose === undefined ? {} : { [Symbol.dispose]: stop }) };
}

/** https://nodejs.org/api/events.html#class-eventseventemitterasyncresource-extends-eventemitter */
export class EventEmitterAsyncResource extends EventEmitter {
  #resource;

  constructor(options = undefined) {
    super(typeof options === "string" ? undefined : options);
    const name = typeof options === "string" ? options : (options?.name ?? new.target.name);
    const { AsyncResource } = lazy("node/async_hooks.js");
    this.#resource = new AsyncResource(name, options);
    this.#resource.eventEmitter = this;
  }

  emit(event, ...args) {
    return this.#resource.runInAsyncScope(super.emit, this, event, ...args);
  }

  emitDestroy() {
    this.#resource.emitDestroy();
  }

  get asyncId() {
    return this.#resource.asyncId();
  }

  get triggerAsyncId() {
    return this.#resource.triggerAsyncId();
  }

  get asyncResource() {
    return this.#resource;
  }
}

Object.assign(EventEmitter, {
  EventEmitter, EventEmitterAsyncResource, addAbortListener, captureRejectionSymbol, errorMonitor, getEventListeners,
  getMaxListeners, init, listenerCount, on, once, setMaxListeners, usingDomains: false,
});
Object.defineProperty(EventEmitter, "defaultMaxListeners", {
  get: () => defaultMaxListeners,
  set: (count) => {
    requireLimit(count, "defaultMaxListeners");
    defaultMaxListeners = count;
  },
  enumerable: true,
});

export default EventEmitter;
