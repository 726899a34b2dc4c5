// The clock of one isolate. Time stands still while code runs, so it tells nothing of what the code does (and of what
// neighbours do): native.now() moves only between turns of the event loop, and to tenths of a millisecond. With the
// switch allow_live_clock it moves all the time, and to microseconds.
import { native } from "./native.js";

let origin = 0; // 0: not started. The snapshot holds this module's state, so it may not be read while making it.

/** The isolate has got its worker: its time begins. */
export function startClock() {
  origin = native.now();
}

/** https://w3c.github.io/hr-time/#dfn-get-time-origin-timestamp */
export function timeOrigin() {
  if (origin === 0) startClock();
  return origin;
}

/** https://w3c.github.io/hr-time/#dfn-current-high-resolution-time: milliseconds since the time origin. */
export function monotonicNow() {
  return Math.max(0, Math.round((native.now() - timeOrigin()) * 1000) / 1000);
}

/** https://w3c.github.io/hr-time/#dfn-current-wall-time, in whole milliseconds since the epoch. */
export function wallClock() {
  return Math.floor(native.now());
}
