// ctx, the third argument of a handler.
import { lazy } from "../internal/lazy.js";
import { defineInterface } from "../internal/platform.js";
import { isOn } from "./compatibility.js";

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

  /** Stubs of the worker's own entry points. */
  get exports() {
    return ownExports();
  }

  /** What Cloudflare Access knows about the client: nothing here. */
  get access() {
    return undefined;
  }

  /** Custom spans. */
  get tracing() {
    return lazy("worker/tracing.js").tracing;
  }

  /** Keeps the call open until `promise` is settled, even after the response is sent. */
  waitUntil(promise) {
    if (typeof this !== "object" || this === null || !(#call in this)) {
      throw new TypeError("Illegal invocation: function called with incorrect `this` reference");
    }
    this.#call.waitUntil(promise);
  }

  /** If the handler throws, the request goes to the origin of the worker, if it has one (atoll/bindings/origin). */
  passThroughOnException() {
    this.#call.passesThrough = true;
  }
}

defineInterface(ExecutionContext);

let exported = null; // the exports of the main module
let stubs = null; // made on first use

/** The module's exports, once its code has run. */
export function setOwnExports(exports) {
  exported = exports;
  stubs = null;
}

/** ctx.exports; undefined if the worker's compatibility date is older. */
export function ownExports() {
  if (!isOn("enable_ctx_exports")) return undefined;
  stubs ??= lazy("rpc/own_exports.js").makeExports(exported ?? {});
  return stubs;
}

/** The context of one call. Promises given to waitUntil() go to `call`. */
export function createContext(call, props = {}) {
  return new ExecutionContext(OURS, call, props);
}
