// https://nodejs.org/api/events.html
import { isAbortSignal } from "../dom/abort.js";
import { EventTarget, listenersOf } from "../dom/event_target.js";
import { inspect } from "../internal/inspect.js";
import { lazy } from "../internal/lazy.js";
import { codedError, invalidArgument, outOfRange, requireFunction } from "./errors.js";
import { on, once, requireSignal, subscribe } from "./events_wait.js";
import { requireBoolean } from "./validate.js";

export const errorMonitor = Symbol("events.errorMonitor");
export const captureRejectionSymbol = Symbol.for("nodejs.rejection");

let defaultMaxListeners = 10;

const limits = new WeakMap(); // event target of the web -> its limit of listeners
const captureRejections = Symbol("kCapture");
const shapeMode = Symbol("shapeMode");

// As in Node, an emitter keeps its listeners in `_events` (a function, or an array of two and more) and their number of events in
// `_eventsCount`: packages look at both. A listener added by once() is a wrapper with the property `listener`.

/** https://nodejs.org/api/events.html#class-eventemitter. A function, because older code calls it without `new`. */
export function EventEmitter(options = undefined) {
  EventEmitter.init.call(this, options);
}

/** What the constructor does; older code calls it on objects of its own. Without one it does nothing. */
export function init(options = undefined) {
  if (this === undefined || this === null || !Object.isExtensible(this)) return;
  if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
    this._events = { __proto__: null };
    this._eventsCount = 0;
    this[shapeMode] = false;
  } else {
    this[shapeMode] = true;
  }
  this._maxListeners = this._maxListeners || undefined;
  if (options?.captureRejections) {
    requireBoolean(options.captureRejections, "options.captureRejections");
    this[captureRejections] = Boolean(options.captureRejections);
  } else {
    this[captureRejections] = EventEmitter.prototype[captureRejections];
  }
}

Object.assign(EventEmitter.prototype, { _events: undefined, _eventsCount: 0, _maxListeners: undefined });
Object.defineProperty(EventEmitter.prototype, captureRejections, { value: false, writable: true, enumerable: false });

function limitOf(emitter) {
  return emitter._maxListeners === undefined ? defaultMaxListeners : emitter._maxListeners;
}

function warnOfMany(emitter, event, list) {
  const most = limitOf(emitter);
  if (!(most > 0 && list.length > most) || list.warned) return;
  list.warned = true;
  const warning = new Error(
    `Possible EventEmitter memory leak detected. ${list.length} ${String(event)} listeners added to ${inspect(emitter, { depth: -1 })}. MaxListeners is ${most}. Use emitter.setMaxListeners() to increase limit`,
  );
  Object.assign(warning, { name: "MaxListenersExceededWarning", emitter, type: event, count: list.length });
  lazy("node/process.js").default.emitWarning(warning);
}

function add(emitter, event, listener, atStart) {
  requireFunction(listener, "listener");
  let events = emitter._events;
  if (events === undefined) {
    events = emitter._events = { __proto__: null };
    emitter._eventsCount = 0;
  } else if (events.newListener !== undefined) {
    emitter.emit("newListener", event, listener.listener ?? listener);
    events = emitter._events; // the listener may have replaced it
  }
  const before = events[event];
  if (before === undefined) {
    events[event] = listener;
    emitter._eventsCount++;
    return emitter;
  }
  let list = before;
  if (typeof before === "function") list = events[event] = atStart ? [listener, before] : [before, listener];
  else if (atStart) list.unshift(listener);
  else list.push(listener);
  warnOfMany(emitter, event, list);
  return emitter;
}

function wrapOnce(emitter, event, listener) {
  const state = { fired: false, wrapper: undefined, emitter, event, listener };
  const wrapper = callOnce.bind(state);
  wrapper.listener = listener;
  state.wrapper = wrapper;
  return wrapper;
}

function callOnce(...args) {
  if (this.fired) return undefined;
  this.emitter.removeListener(this.event, this.wrapper);
  this.fired = true;
  return this.listener.apply(this.emitter, args);
}

// An `error` event without listeners is thrown.
function throwUnhandled(args) {
  const [error] = args;
  if (error instanceof Error) throw error;
  let text = error;
  try {
    text = lazy("node/util_module.js").inspect(error);
  } catch {
    // Its inspect function throws: the text of the value remains.
  }
  const thrown = codedError(Error, "ERR_UNHANDLED_ERROR", args.length === 0 ? "Unhandled error. (undefined)" : `Unhandled error. (${text})`);
  thrown.context = error;
  throw thrown;
}

function requireLimit(count, name) {
  if (typeof count !== "number") throw invalidArgument(name, "of type number", count);
  if (Number.isNaN(count) || count < 0) throw outOfRange(name, ">= 0", count);
}

function watchRejection(emitter, result, event, args) {
  if (!emitter[captureRejections]) return;
  try {
    const { then } = result;
    if (typeof then === "function") {
      then.call(result, undefined, (error) => lazy("node/process.js").nextTick(passRejection, emitter, error, event, args));
    }
  } catch (error) {
    emitter.emit("error", error);
  }
}

function passRejection(emitter, error, event, args) {
  const handler = emitter[captureRejectionSymbol];
  if (typeof handler === "function") {
    handler.call(emitter, error, event, ...args);
    return;
  }
  // The listeners of "error" must not come here again.
  const before = emitter[captureRejections];
  try {
    emitter[captureRejections] = false;
    emitter.emit("error", error);
  } finally {
    emitter[captureRejections] = before;
  }
}

function listOf(emitter, event) {
  const found = emitter._events?.[event];
  if (found === undefined) return [];
  return typeof found === "function" ? [found] : [...found];
}

const methods = {
  setMaxListeners(n) {
    requireLimit(n, "setMaxListeners");
    this._maxListeners = n;
    return this;
  },

  getMaxListeners() {
    return limitOf(this);
  },

  emit(event, ...args) {
    const events = this._events;
    if (event === "error") {
      if (events?.[errorMonitor] !== undefined) this.emit(errorMonitor, ...args);
      if (events?.error === undefined) throwUnhandled(args);
    }
    const handler = events?.[event];
    if (handler === undefined) return false;
    if (typeof handler === "function") {
      const result = handler.apply(this, args);
      if (result !== undefined && result !== null) watchRejection(this, result, event, args);
      return true;
    }
    // A copy, so that listeners that are added or removed meanwhile have no effect.
    for (const listener of handler.slice()) {
      const result = listener.apply(this, args);
      if (result !== undefined && result !== null) watchRejection(this, result, event, args);
    }
    return true;
  },

  addListener(type, listener) {
    return add(this, type, listener, false);
  },

  prependListener(type, listener) {
    return add(this, type, listener, true);
  },

  once(type, listener) {
    requireFunction(listener, "listener");
    this.on(type, wrapOnce(this, type, listener));
    return this;
  },

  prependOnceListener(type, listener) {
    requireFunction(listener, "listener");
    this.prependListener(type, wrapOnce(this, type, listener));
    return this;
  },

  removeListener(type, listener) {
    requireFunction(listener, "listener");
    const events = this._events;
    const list = events?.[type];
    if (list === undefined) return this;
    if (typeof list === "function") {
      if (list !== listener && list.listener !== listener) return this;
      this._eventsCount -= 1;
      if (this[shapeMode]) events[type] = undefined;
      else if (this._eventsCount === 0) this._events = { __proto__: null };
      else delete events[type];
      if (events.removeListener !== undefined) this.emit("removeListener", type, list.listener ?? listener);
      return this;
    }
    const index = list.findLastIndex((each) => each === listener || each.listener === listener);
    if (index === -1) return this;
    if (index === 0) list.shift();
    else list.splice(index, 1);
    if (list.length === 1) [events[type]] = list;
    if (events.removeListener !== undefined) this.emit("removeListener", type, listener);
    return this;
  },

  removeAllListeners(type = undefined) {
    const events = this._events;
    if (events === undefined) return this;
    if (events.removeListener === undefined) {
      if (arguments.length === 0) {
        this._events = { __proto__: null };
        this._eventsCount = 0;
      } else if (events[type] !== undefined) {
        if (--this._eventsCount === 0) this._events = { __proto__: null };
        else delete events[type];
      }
      this[shapeMode] = false;
      return this;
    }
    if (arguments.length === 0) {
      for (const key of Reflect.ownKeys(events)) if (key !== "removeListener") this.removeAllListeners(key);
      this.removeAllListeners("removeListener");
      this._events = { __proto__: null };
      this._eventsCount = 0;
      this[shapeMode] = false;
      return this;
    }
    for (const listener of listOf(this, type).reverse()) this.removeListener(type, listener);
    return this;
  },

  listeners(type) {
    return listOf(this, type).map((listener) => listener.listener ?? listener);
  },

  rawListeners(type) {
    return listOf(this, type);
  },

  listenerCount(type, listener = undefined) {
    const list = listOf(this, type);
    if (listener === undefined || listener === null) return list.length;
    return list.filter((each) => each === listener || each.listener === listener).length;
  },

  eventNames() {
    return this._eventsCount > 0 ? Reflect.ownKeys(this._events) : [];
  },
};
methods.on = methods.addListener;
methods.off = methods.removeListener;

for (const [name, method] of Object.entries(methods)) {
  Object.defineProperty(EventEmitter.prototype, name, { value: method, writable: true, enumerable: true, configurable: true });
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
  return limits.get(emitter) ?? (isAbortSignal(emitter) ? 0 : defaultMaxListeners);
}

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
Object.defineProperties(EventEmitter, {
  captureRejections: {
    get: () => EventEmitter.prototype[captureRejections],
    set: (value) => {
      requireBoolean(value, "EventEmitter.captureRejections");
      EventEmitter.prototype[captureRejections] = value;
    },
    configurable: true,
    enumerable: true,
  },
});
Object.defineProperty(EventEmitter, "defaultMaxListeners", {
  get: () => defaultMaxListeners,
  set: (count) => {
    requireLimit(count, "defaultMaxListeners");
    defaultMaxListeners = count;
  },
  enumerable: true,
});

export { on, once };

export default EventEmitter;
