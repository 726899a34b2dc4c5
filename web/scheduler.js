// https://wicg.github.io/scheduling-apis/#scheduler: only the part that every runtime has.
import { addAbortAlgorithm, isAbortSignal, removeAbortAlgorithm } from "./dom/abort.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor, requireArguments, toDictionary } from "./internal/webidl.js";
import { clearTimeout, startTimer, toDelay } from "./timers.js";

const INTERNAL = Symbol("made by the platform");

export class Scheduler {
  #isScheduler = true;

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  /** https://developers.cloudflare.com/workers/platform/changelog/: resolves after `delay` milliseconds. */
  wait(delay, options = undefined) {
    return new Promise((resolve, reject) => {
      this.#isScheduler;
      requireArguments(arguments.length, 1, "Scheduler.wait", "number");
      const milliseconds = toDelay(delay);
      const { signal } = toDictionary(options, "Scheduler.wait");
      if (signal !== undefined && !isAbortSignal(signal)) throw new TypeError("Scheduler.wait: signal is not an AbortSignal.");
      signal?.throwIfAborted();
      if (signal === undefined) {
        startTimer(resolve, milliseconds);
        return;
      }
      const id = startTimer(() => {
        removeAbortAlgorithm(signal, stop);
        resolve();
      }, milliseconds);
      const stop = (reason) => {
        clearTimeout(id);
        reject(reason);
      };
      addAbortAlgorithm(signal, stop);
    });
  }
}

defineInterface(Scheduler);

export const scheduler = new Scheduler(INTERNAL);
