// Custom spans: https://developers.cloudflare.com/workers/observability/traces/. Atoll's traces have the spans of calls and of what they
// ask for, and none of the worker's own. So a worker finds here what it finds at Cloudflare in a call that is not traced.
import { defineInterface } from "../internal/platform.js";
import { requireArguments, wrongArgument } from "../internal/webidl.js";

const OURS = Symbol("ours");

class Span {
  constructor(key) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
  }

  get isTraced() {
    return false;
  }

  setAttribute() {
    return this;
  }

  setAttributes() {
    return this;
  }

  end() {}
}

/** Calls `callback(span, ...args)`. */
function enter(name, given) {
  requireArguments(given.length, 1, `Tracing.${name}`);
  const [, callback, ...args] = given;
  if (typeof callback !== "function") throw wrongArgument(`Tracing.${name}`, 1, "Function");
  return callback(new Span(OURS), ...args);
}

class Tracing {
  constructor(key) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
  }

  enterSpan(...given) {
    return enter("enterSpan", given);
  }

  startActiveSpan(...given) {
    return enter("startActiveSpan", given);
  }
}

defineInterface(Span, { name: "Span" });
defineInterface(Tracing, { name: "Tracing" });

/** `tracing` of cloudflare:workers, and of ctx. */
export const tracing = new Tracing(OURS);
