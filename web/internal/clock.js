// The clock of one isolate. Time stands still while code runs, so it cannot measure what the code, or a neighbour on the same
// processor, does: native.now() changes only between turns of the event loop, in steps of 0.1 ms. With allow_live_clock it
// runs all the time, in microseconds.
import { native } from "./native.js";

let origin = 0; // 0: not started. It must not be read while the snapshot is made, because the snapshot keeps this module's state.

/** Starts the clock when the isolate gets its worker. */
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
