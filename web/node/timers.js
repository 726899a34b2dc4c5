// https://nodejs.org/api/timers.html
import * as promises from "./timers_promises.js";
import { Immediate, setImmediate, setInterval, setTimeout, Timeout } from "../timer_objects.js";
import { clearImmediate, clearInterval, clearTimeout } from "../timers.js";

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
