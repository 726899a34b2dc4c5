// Timers as objects, for workers with Node's globals. https://nodejs.org/api/timers.html#class-timeout
//
// A worker has no process to keep alive, so ref() and unref() only remember what was asked.
import { clearTimeout, setTimeout as start, setInterval as repeat, setImmediate as startSoon } from "./timers.js";

const INTERNAL = Symbol("made by the platform");

class Timer {
  #set; // () -> id
  #id;
  #isRefed = true;

  constructor(token, set) {
    if (token !== INTERNAL) throw new TypeError("Illegal constructor");
    this.#set = set;
    this.#id = set();
  }

  ref() {
    this.#isRefed = true;
    return this;
  }

  unref() {
    this.#isRefed = false;
    return this;
  }

  hasRef() {
    return this.#isRefed;
  }

  [Symbol.dispose]() {
    clearTimeout(this.#id);
  }

  [Symbol.toPrimitive]() {
    return this.#id;
  }

  static restart(timer) {
    clearTimeout(timer.#id);
    timer.#id = timer.#set();
  }
}

const { restart } = Timer;
delete Timer.restart;

export class Timeout extends Timer {
  /** Starts over, with the same delay. */
  refresh() {
    restart(this);
    return this;
  }

  close() {
    clearTimeout(this);
    return this;
  }
}

export class Immediate extends Timer {}

function requireCallback(callback) {
  const type = typeof callback;
  if (type === "function" || type === "string") return; // code in a string is refused later, unless the worker may run it
  const text = callback === null || callback === undefined ? `${callback}` : type === "object" ? "an instance of Object" : `type ${type} (${String(callback)})`;
  const error = new TypeError(`The "callback" argument must be of type function. Received ${text}`);
  throw Object.assign(error, { code: "ERR_INVALID_ARG_TYPE" });
}

// As in Node, the timer is `this` in the callback.
function calledOn(timer, callback) {
  return typeof callback === "function" ? (...args) => Reflect.apply(callback, timer(), args) : callback;
}

export function setTimeout(callback, delay = 1, ...args) {
  requireCallback(callback);
  const timer = new Timeout(INTERNAL, () => start(calledOn(() => timer, callback), delay, ...args));
  return timer;
}

export function setInterval(callback, delay = 1, ...args) {
  requireCallback(callback);
  const timer = new Timeout(INTERNAL, () => repeat(calledOn(() => timer, callback), delay, ...args));
  return timer;
}

export function setImmediate(callback, ...args) {
  requireCallback(callback);
  const timer = new Immediate(INTERNAL, () => startSoon(calledOn(() => timer, callback), ...args));
  return timer;
}
