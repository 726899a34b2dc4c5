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

  /** The `props` that the calling service binding was deployed with. */
  get props() {
    return this.#props;
  }

  /** Keeps the call open until `promise` is settled, even after the response is sent. */
  waitUntil(promise) {
    if (typeof this !== "object" || this === null || !(#call in this)) {
      throw new TypeError("Illegal invocation: function called with incorrect `this` reference");
    }
    this.#call.waitUntil(promise);
  }

  /** Does nothing: there is no origin behind the worker to pass a request to. */
  passThroughOnException() {}
}

defineInterface(ExecutionContext);

/** The context of one call. Promises given to waitUntil() go to `call`. */
export function createContext(call, props = {}) {
  return new ExecutionContext(OURS, call, props);
}
