// https://nodejs.org/api/timers.html
import * as promises from "./timers_promises.js";
import * as objects from "../timer_objects.js";
import { clearImmediate, clearInterval, clearTimeout } from "../timers.js";
import { requireFunction } from "./errors.js";

const { Immediate, Timeout } = objects;

// Unlike the globals, these never take code in a string.
const checked = (name) => {
  const start = objects[name];
  const timer = (callback, ...args) => {
    requireFunction(callback, "callback");
    return start(callback, ...args);
  };
  return Object.defineProperty(timer, "name", { value: name });
};
const setImmediate = checked("setImmediate");
const setInterval = checked("setInterval");
const setTimeout = checked("setTimeout");

/** Older functions of Node, over the usual ones. */
export function active(timer) {
  timer?.refresh?.();
}

export function _unrefActive(timer) {
  active(timer);
}

export function enroll() {
  throw new Error("Not implemented. Use setTimeout() instead.");
}

export function unenroll(timer) {
  clearTimeout(timer);
}

export { clearImmediate, clearInterval, clearTimeout, Immediate, promises, setImmediate, setInterval, setTimeout, Timeout };
