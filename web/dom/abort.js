// https://dom.spec.whatwg.org/#aborting-ongoing-activities
import { Event } from "./event.js";
import { countListeners, EventTarget, fireEvent, HandlerSlot, setSignals } from "./event_target.js";
import { DOMException } from "./exception.js";
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor, requireArguments, toEnforcedRange, toSequence, wrongArgument } from "../internal/webidl.js";
import { startTimer } from "../timers.js";

const INTERNAL = Symbol("made by the platform");

/** A new signal that only its creator can abort. */
export let createSignal;
/** https://dom.spec.whatwg.org/#abortsignal-signal-abort: has no effect on an aborted signal. */
export let signalAbort;
/** https://dom.spec.whatwg.org/#abortsignal-add */
export let addAbortAlgorithm;
/** https://dom.spec.whatwg.org/#abortsignal-remove. Code that is done must remove its algorithm, because a signal may live long. */
export let removeAbortAlgorithm;
export let isAbortSignal;
/** https://dom.spec.whatwg.org/#create-a-dependent-abort-signal */
export let createDependentSignal;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #algorithms = null; // Set of functions that run once, before the event
  #sources = null; // of a dependent signal: the signals it follows, none of them dependent
  #dependents = null; // weak references to signals that follow this one
  #retained = null; // dependents with listeners, which must not be garbage collected
  #onabort = null;

  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }

  /** https://dom.spec.whatwg.org/#dom-abortsignal-abort */
  static abort(reason = undefined) {
    const signal = createSignal();
    signalAbort(signal, reason);
    return signal;
  }

  /** https://dom.spec.whatwg.org/#dom-abortsignal-timeout */
  static timeout(milliseconds) {
    requireArguments(arguments.length, 1, "AbortSignal.timeout", "number");
    const delay = toEnforcedRange(milliseconds, "AbortSignal.timeout");
    const signal = createSignal();
    startTimer(() => signalAbort(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")), delay);
    return signal;
  }

  /** https://dom.spec.whatwg.org/#dom-abortsignal-any */
  static any(signals) {
    requireArguments(arguments.length, 1, "AbortSignal.any", "Array");
    if (typeof signals !== "object" || signals === null) throw wrongArgument("AbortSignal.any", 0, "Array");
    const list = toSequence(signals, "AbortSignal.any");
    const wrong = list.findIndex((signal) => !isAbortSignal(signal));
    if (wrong !== -1) throw new TypeError(`Incorrect type for array element ${wrong}: the provided value is not of type 'AbortSignal'.`);
    return createDependentSignal(list);
  }

  get aborted() {
    return this.#aborted;
  }

  get reason() {
    return this.#reason;
  }

  /** https://dom.spec.whatwg.org/#dom-abortsignal-throwifaborted */
  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  get onabort() {
    return this.#onabort === null ? null : this.#onabort.get();
  }

  set onabort(handler) {
    this.#onabort ??= new HandlerSlot("abort");
    this.#onabort.set(this, handler);
  }

  addEventListener(type, callback, options = undefined) {
    requireArguments(arguments.length, 2, "EventTarget.addEventListener");
    super.addEventListener(type, callback, options);
    this.#retain();
  }

  removeEventListener(type, callback, options = undefined) {
    requireArguments(arguments.length, 2, "EventTarget.removeEventListener");
    super.removeEventListener(type, callback, options);
    this.#release();
  }

  // A signal with listeners lives as long as the signals that may abort it.
  #retain() {
    if (this.#sources === null) return;
    for (const source of this.#sources) (source.#retained ??= new Set()).add(this);
  }

  #release() {
    if (this.#sources === null || this.#algorithms?.size > 0 || countListeners(this, "abort") > 0) return;
    for (const source of this.#sources) source.#retained?.delete(this);
  }

  #follow(source) {
    this.#sources.add(source);
    source.#dependents ??= [];
    const count = source.#dependents.push(new WeakRef(this));
    // Remove references to collected signals, at powers of two so that the cost per signal stays constant.
    if (count >= 16 && (count & (count - 1)) === 0) {
      source.#dependents = source.#dependents.filter((reference) => reference.deref() !== undefined);
    }
  }

  #runAbortSteps() {
    const algorithms = this.#algorithms;
    this.#algorithms = null;
    if (algorithms !== null) for (const algorithm of algorithms) algorithm(this.#reason);
    fireEvent(this, new Event("abort"));
  }

  static {
    createSignal = () => new AbortSignal(INTERNAL);

    isAbortSignal = (value) => typeof value === "object" && value !== null && #aborted in value;

    addAbortAlgorithm = (signal, algorithm) => {
      if (signal.#aborted) return;
      (signal.#algorithms ??= new Set()).add(algorithm);
      signal.#retain();
    };

    removeAbortAlgorithm = (signal, algorithm) => {
      if (signal.#algorithms?.delete(algorithm)) signal.#release();
    };

    signalAbort = (signal, reason = undefined) => {
      // Step 1.
      if (signal.#aborted) return;
      // Step 2.
      signal.#aborted = true;
      signal.#reason =
        reason === undefined ? new DOMException("The operation was aborted", "AbortError") : reason;
      // Steps 3 and 4.
      const following = [];
      for (const reference of signal.#dependents ?? []) {
        const dependent = reference.deref();
        if (dependent === undefined || dependent.#aborted) continue;
        dependent.#aborted = true;
        dependent.#reason = signal.#reason;
        following.push(dependent);
      }
      signal.#dependents = signal.#retained = null;
      // Steps 5 and 6.
      signal.#runAbortSteps();
      for (const dependent of following) {
        for (const source of dependent.#sources) source.#retained?.delete(dependent);
        dependent.#runAbortSteps();
      }
    };

    createDependentSignal = (signals) => {
      const result = createSignal();
      // Step 2.
      const aborted = signals.find((signal) => signal.#aborted);
      if (aborted !== undefined) {
        result.#aborted = true;
        result.#reason = aborted.#reason;
        return result;
      }
      // Steps 3 and 4.
      result.#sources = new Set();
      for (const signal of signals) {
        for (const source of signal.#sources ?? [signal]) {
          if (!result.#sources.has(source)) result.#follow(source);
        }
      }
      return result;
    };
  }
}

defineInterface(AbortSignal, { name: "AbortSignal", describe: ({ aborted }) => ({ aborted }) });

setSignals({ isAbortSignal, addAbortAlgorithm, removeAbortAlgorithm });

/** https://dom.spec.whatwg.org/#interface-abortcontroller */
export class AbortController {
  #signal = createSignal();

  get signal() {
    return this.#signal;
  }

  abort(reason = undefined) {
    signalAbort(this.#signal, reason);
  }
}

defineInterface(AbortController);
