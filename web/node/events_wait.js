// `events.once` and `events.on`: promises and async iterators of events.
// https://nodejs.org/api/events.html#eventsonceemitter-name-options
import { isAbortSignal } from "../dom/abort.js";
import { AbortError, invalidArgument } from "./errors.js";
import { requireInteger, requireOptions } from "./validate.js";

export function requireSignal(signal, name = "options.signal") {
  if (signal !== undefined && !isAbortSignal(signal)) throw invalidArgument(name, "an instance of AbortSignal", signal);
}

/** Subscribes to an emitter of Node or an event target of the web; returns the function that undoes it. */
export function subscribe(target, event, listener, onlyOnce = false) {
  if (typeof target?.on === "function") {
    if (onlyOnce) target.once(event, listener);
    else target.on(event, listener);
    return () => target.removeListener(event, listener);
  }
  if (target === undefined || target === null) throw new TypeError(`Cannot read properties of ${target} (reading 'on')`);
  if (typeof target.addEventListener !== "function") {
    throw invalidArgument("emitter", "an instance of EventEmitter", target);
  }
  target.addEventListener(event, listener, { once: onlyOnce });
  return () => target.removeEventListener(event, listener);
}

export async function once(emitter, event, options = {}) {
  requireOptions(options, "options");
  const { signal } = options;
  requireSignal(signal);
  if (signal?.aborted) throw new AbortError(signal);
  return new Promise((resolve, reject) => {
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

const iteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype);

/** https://nodejs.org/api/events.html#eventsonemitter-eventname-options */
export function on(emitter, event, options = {}) {
  requireOptions(options, "options");
  const { signal, close = [] } = options;
  requireSignal(signal);
  if (signal?.aborted) throw new AbortError(signal);
  const most = options.highWaterMark ?? options.highWatermark ?? Number.MAX_SAFE_INTEGER;
  const least = options.lowWaterMark ?? options.lowWatermark ?? 1;
  requireInteger(most, "options.highWaterMark", 1);
  requireInteger(least, "options.lowWaterMark", 1);
  const queue = [];
  const waiting = [];
  const undo = [];
  let isPaused = false;
  let ended = false;
  let failure;
  const end = () => {
    for (const each of undo.splice(0)) each();
    ended = true;
    for (const { resolve } of waiting.splice(0)) resolve({ value: undefined, done: true });
    return Promise.resolve({ value: undefined, done: true });
  };
  const fail = (error) => {
    const reader = waiting.shift();
    if (reader === undefined) failure = { error };
    else reader.reject(error);
    end();
  };
  undo.push(subscribe(emitter, event, (...args) => {
    const reader = waiting.shift();
    if (reader !== undefined) {
      reader.resolve({ value: args, done: false });
      return;
    }
    queue.push(args);
    if (!isPaused && queue.length > most) {
      isPaused = true;
      emitter.pause?.();
    }
  }));
  if (event !== "error" && typeof emitter.on === "function") undo.push(subscribe(emitter, "error", fail));
  for (const name of close) undo.push(subscribe(emitter, name, end));
  if (signal !== undefined) undo.push(subscribe(signal, "abort", () => fail(new AbortError(signal)), true));
  return Object.setPrototypeOf({
    next() {
      if (queue.length > 0) {
        const value = queue.shift();
        if (isPaused && queue.length < least) {
          isPaused = false;
          emitter.resume?.();
        }
        return Promise.resolve({ value, done: false });
      }
      if (failure !== undefined) {
        const { error } = failure;
        failure = undefined;
        return Promise.reject(error);
      }
      if (ended) return end();
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    return: end,
    throw(error) {
      if (!(error instanceof Error)) throw invalidArgument("EventEmitter.AsyncIterator", "an instance of Error", error);
      fail(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  }, iteratorPrototype);
}
