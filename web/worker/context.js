// ctx, the third argument of a handler.
import { defineInterface } from "../internal/platform.js";

const OURS = Symbol("ours");

/** https://developers.cloudflare.com/workers/runtime-apis/context/ */
export class ExecutionContext {
  #call;
  #props;

  constructor(key, call, props) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
    this.#call = call;
    this.#props = props;
  }

  /** What the service binding that called was deployed with. */
  get props() {
    return this.#props;
  }

  /** Keeps the call alive until `promise` is settled, after the response too. */
  waitUntil(promise) {
    if (typeof this !== "object" || this === null || !(#call in this)) {
      throw new TypeError("Illegal invocation: function called with incorrect `this` reference");
    }
    this.#call.waitUntil(promise);
  }

  /** With no origin behind the worker there is nothing to pass through to. */
  passThroughOnException() {}
}

defineInterface(ExecutionContext);

/** The context of one call; `call` is told what to wait for. */
export function createContext(call, props = {}) {
  return new ExecutionContext(OURS, call, props);
}
