// What another worker may call: the exports of this one that are entry points.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/rpc/
import { lazy } from "../internal/lazy.js";
import { Event } from "../internal/wire.gen.js";
import { createContext } from "./context.js";
import { currentEnv } from "./env.js";
import { defineEvent } from "./events.js";
import { isEntrypointClass, WorkerEntrypoint } from "./handlers.js";

const RESERVED = new Set(["constructor", "fetch", "connect", "dup", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"]);

let exports = { __proto__: null };

/** The module's exports, once its code has run. */
export function setExports(value) {
  exports = value;
}

function entrypoint(name) {
  const found = exports[name ?? "default"];
  if (found === undefined) throw new TypeError(`The worker has no entrypoint "${name ?? "default"}".`);
  return found;
}

/** A fetch of an entry point: (request, call) => Response or a promise of it. */
export function runEntrypoint({ entrypoint: name, props }) {
  return (request, call) => {
    const target = entrypoint(name);
    const context = createContext(call, props);
    const env = currentEnv();
    const handlers = isEntrypointClass(target) ? new target(context, env) : target;
    if (typeof handlers.fetch !== "function") throw new TypeError("Handler does not export a fetch() function.");
    return handlers.fetch(request, env, context);
  };
}

/** A method of the class itself or of one it extends; neither of Object's nor of an instance. */
function findMethod(Class, name) {
  if (!RESERVED.has(name)) {
    for (let at = Class.prototype; at !== WorkerEntrypoint.prototype && at !== null; at = Object.getPrototypeOf(at)) {
      const found = Object.getOwnPropertyDescriptor(at, name);
      if (typeof found?.value === "function") return found.value;
    }
  }
  throw new TypeError(`The RPC receiver does not implement the method "${name}".`);
}

/** Gives { bytes, sent } of what the method returned: see parcel.js. */
defineEvent(Event.RPC, async (target, meta, body, call) => {
  const Class = entrypoint(meta.entrypoint);
  if (!isEntrypointClass(Class)) {
    throw new TypeError("The receiver is not an RPC object: only classes that extend WorkerEntrypoint have methods to call.");
  }
  const { readValue, writeValue } = lazy("worker/parcel.js");
  const method = findMethod(Class, meta.method);
  const instance = new Class(createContext(call, meta.props), currentEnv());
  return writeValue(await method.apply(instance, readValue(body)));
});
