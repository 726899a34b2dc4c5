// https://nodejs.org/api/timers.html
import * as promises from "./timers_promises.js";
import { Immediate, setImmediate, setInterval, setTimeout, Timeout } from "../timer_objects.js";
import { clearImmediate, clearInterval, clearTimeout } from "../timers.js";

/** Older functions of Node, over the usual ones. */
export function active(timer) {
  timer?.refresh?.();
}

export function unenroll(timer) {
  clearTimeout(timer);
}

export { clearImmediate, clearInterval, clearTimeout, Immediate, promises, setImmediate, setInterval, setTimeout, Timeout };
