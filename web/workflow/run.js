// One pass over the code of an instance: from its start or a wake-up to its end, or until it only waits.
//
// A pass lives in one call. When every step of it sleeps or waits for an event, the pass rests: its promises stay open for good,
// and the next pass runs the code again, with the results of the steps that are done.
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { clearTimeout, startTimer } from "../timers.js";

const NEAR_MS = 2000; // a wait that ends so soon is waited for in place
const LOOK_MS = [5, 20, 50, 100, 250, 500, 1000]; // between looks whether anything else goes on
const LONGEST_TIMER = 10_000;
// A call has limits of CPU and wall time. A long workflow goes on in another pass.
const MOST_BEGUN = 250;
const MOST_MS = 240_000;
const CALL_MS = 840_000; // a minute less than a call in the background may take

export const now = () => Math.trunc(native.now());

/** For code of a pass that is over: it goes no further. */
export const never = () => new Promise(() => {});

export class Run {
  #waits = new Set(); // { wake, type, resolve }
  #running = 0; // attempts of steps
  #begun = 0;
  #held = 0; // steps that the next pass begins
  #timer = null;
  #looks = 0;
  #since = now();
  #call = callOf(native.getAsyncContext());
  #settle;
  isOver = false;
  isPausing = false;

  /** Runs the code; how the pass ends: { kind: "rest", wake }, { kind: "complete", value }, { kind: "error", error } or { kind: "stopped" }. */
  begin(code) {
    const { promise, resolve } = Promise.withResolvers();
    this.#settle = resolve;
    new Promise((start) => start(code())).then(
      (value) => this.end({ kind: "complete", value }),
      (error) => this.end({ kind: "error", error }),
    );
    return promise;
  }

  end(outcome) {
    if (this.isOver) return;
    this.isOver = true;
    this.#clear();
    this.#settle(outcome);
  }

  /** How long an attempt may take that begins now. */
  get left() {
    return CALL_MS - (now() - this.#since);
  }

  get isWaiting() {
    return this.#running === 0 && this.#waits.size > 0;
  }

  pause(isPausing) {
    this.isPausing = isPausing;
    this.#changed();
  }

  // What steps do

  /** Until `wake`, or until `deliver` is called with `type`. */
  wait(wake, type = null) {
    return new Promise((resolve) => {
      this.#waits.add({ wake, type, resolve });
      this.#changed();
    });
  }

  /** An event of this type has come: the first step that waits for it goes on. */
  deliver(type) {
    for (const wait of this.#waits) {
      if (wait.type !== type) continue;
      this.#waits.delete(wait);
      wait.resolve();
      this.#changed();
      return;
    }
  }

  /** Before an attempt. A pass that is to end begins no more of them. */
  async admit() {
    if (this.isOver || this.#mustEnd()) {
      this.#held++;
      this.#changed();
      await never();
    }
    this.#begun++;
  }

  enter() {
    this.#running++;
  }

  leave() {
    this.#running--;
    this.#changed();
  }

  #mustEnd() {
    return this.isPausing || this.#begun >= MOST_BEGUN || now() - this.#since > MOST_MS;
  }

  // Rest

  #changed() {
    this.#looks = 0;
    this.#look();
  }

  #clear() {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #next() {
    let next = Infinity;
    for (const { wake } of this.#waits) next = Math.min(next, wake);
    return next;
  }

  /** Ends the waits that are due, and sees to the next one. */
  #look() {
    this.#clear();
    if (this.isOver) return;
    const at = now();
    for (const wait of this.#waits) {
      if (wait.wake > at || this.isPausing) continue;
      this.#waits.delete(wait);
      wait.resolve();
    }
    const isQuiet = this.#running === 0 && (this.#waits.size > 0 || this.#held > 0);
    const next = this.#next();
    if (!isQuiet && next === Infinity) return;
    const pause = LOOK_MS[Math.min(this.#looks++, LOOK_MS.length - 1)];
    const rests = isQuiet && (this.#held > 0 || this.isPausing || next - at > NEAR_MS);
    const delay = rests ? pause : Math.min(Math.max(next - at, 1), LONGEST_TIMER);
    this.#timer = startTimer(() => this.#onTimer(rests), delay);
  }

  #onTimer(rests) {
    this.#timer = null;
    const isBusy = native.isBusy(this.#call) || native.hasTimers(this.#call);
    if (rests && !isBusy && this.#running === 0) this.end({ kind: "rest", wake: this.#held > 0 ? now() : this.#next() });
    else this.#look();
  }
}

/** A timer of any length; gives a function that stops it. */
export function after(ms, callback) {
  const until = now() + ms;
  let timer = null;
  const step = () => {
    const left = until - now();
    if (left <= 0) callback();
    else timer = startTimer(step, Math.min(left, LONGEST_TIMER));
  };
  step();
  return () => {
    if (timer !== null) clearTimeout(timer);
  };
}
