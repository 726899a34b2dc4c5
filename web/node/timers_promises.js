// https://nodejs.org/api/timers.html#timers-promises-api
import { isAbortSignal } from "../dom/abort.js";
import * as timers from "../timers.js";
import { AbortError, invalidArgument } from "./errors.js";
import { requireBoolean, requireOptions } from "./validate.js";

function signalOf(options) {
  requireOptions(options, "options");
  const { signal, ref = true } = options;
  if (signal !== undefined && !isAbortSignal(signal)) throw invalidArgument("options.signal", "an instance of AbortSignal", signal);
  requireBoolean(ref, "options.ref");
  return signal;
}

function requireDelay(delay) {
  if (delay !== undefined && typeof delay !== "number") throw invalidArgument("delay", "of type number", delay);
}

function wait(start, value, options) {
  return new Promise((resolve, reject) => {
    const signal = signalOf(options);
    if (signal?.aborted) throw new AbortError(signal);
    const onAbort = () => {
      timers.clearTimeout(id);
      reject(new AbortError(signal));
    };
    const id = start(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value);
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export async function setTimeout(delay = undefined, value = undefined, options = {}) {
  requireDelay(delay);
  return wait((done) => timers.setTimeout(done, delay ?? 1), value, options);
}

export function setImmediate(value = undefined, options = {}) {
  return wait((done) => timers.setImmediate(done), value, options);
}

export async function* setInterval(delay = undefined, value = undefined, options = {}) {
  requireDelay(delay);
  const signal = signalOf(options);
  if (signal?.aborted) throw new AbortError(signal);
  let due = 0;
  let wake = null;
  const ring = () => {
    wake?.();
    wake = null;
  };
  const id = timers.setInterval(() => {
    due++;
    ring();
  }, delay ?? 1);
  signal?.addEventListener("abort", ring, { once: true });
  try {
    for (;;) {
      if (signal?.aborted) throw new AbortError(signal);
      if (due > 0) {
        due--;
        yield value;
      } else {
        await new Promise((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    timers.clearInterval(id);
    signal?.removeEventListener("abort", ring);
  }
}

export const scheduler = {
  wait: (delay, options = {}) => setTimeout(delay, undefined, options),
  yield: () => setImmediate(),
};
