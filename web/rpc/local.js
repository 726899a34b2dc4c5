// Capabilities: what a stub refers to. A capability counts its stubs and the sessions that export it; when the last one is gone,
// the target's [Symbol.dispose]() runs, once.
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { currentScope, enter } from "../internal/scopes.js";
import { readResult, readValue, writeValue } from "../worker/parcel.js";
import { movesParameters } from "./flags.js";
import { useTarget, useValue } from "./members.js";
import { makeStub } from "./stubs.js";

/** Calls `body` as part of a call of this worker, without the stores of AsyncLocalStorage. */
export function inCall(owner, body) {
  const before = native.getAsyncContext();
  native.setAsyncContext(owner);
  try {
    return body();
  } finally {
    native.setAsyncContext(before);
  }
}

/** An object of this isolate. */
export class LocalCap {
  #target;
  #use;
  #disposable;
  #references = 0;

  /** `disposable`: the object whose [Symbol.dispose]() runs when nobody refers to the target any more; null if there is none. */
  constructor(target, { use = useTarget, disposable = target } = {}) {
    this.#target = target;
    this.#use = use;
    this.#disposable = disposable;
    this.owner = callOf(native.getAsyncContext());
    this.scope = currentScope(); // a callback of a critical section runs in that section
  }

  retain() {
    this.#references++;
  }

  release() {
    if (--this.#references === 0) this.#dispose();
  }

  #dispose() {
    const disposable = this.#disposable;
    if (disposable === null || typeof disposable[Symbol.dispose] !== "function") return;
    inCall(this.owner, () => Promise.resolve().then(() => disposable[Symbol.dispose]()));
  }

  /** Calls the target itself, for another worker. Values are not copied. */
  run(path, args) {
    if (this.scope === undefined) return this.#use(this.#target, path, args);
    return new Promise((resolve, reject) => {
      enter(this.scope, () => {
        try {
          resolve(this.#use(this.#target, path, args));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Calls the target through a stub of this worker: values are copied as if they were sent. */
  ask(path, args) {
    const loop = new Loop();
    const written = args === null ? null : writeValue(args, loop, movesParameters());
    this.retain();
    const promise = this.#answer(loop, path, written);
    promise.catch(() => {});
    return new ValueAnswer(promise);
  }

  async #answer(loop, path, written) {
    await undefined;
    const read = written === null ? null : readValue(written.bytes, loop);
    try {
      return readResult(writeValue(await this.run(path, read === null ? null : read.value), loop, true).bytes, loop, null);
    } finally {
      read?.finish();
      this.release();
    }
  }
}

/** What a session is to values, for values that stay in this isolate. */
class Loop {
  #caps = [];

  capOut(cap) {
    cap.retain();
    return { cap: this.#caps.push(cap) - 1 };
  }

  undo({ cap: number }) {
    this.#caps[number].release();
  }

  capIn({ cap: number }) {
    const cap = this.#caps[number];
    const stub = makeStub(cap);
    cap.release();
    return stub;
  }
}

/** The answer of a call whose value is, or will be, here. Calls on it wait for the value. */
export class ValueAnswer {
  isTaken = false;

  constructor(promise) {
    this.promise = promise;
  }

  ask(path, args) {
    const promise = this.promise.then((value) => useValue(value, path, args));
    promise.catch(() => {});
    return new ValueAnswer(promise);
  }

  /** Only an answer that nobody has awaited is disposed with its promise. */
  dispose() {
    if (!this.isTaken) this.promise.then((value) => value?.[Symbol.dispose]?.(), () => {});
  }
}
