// What another worker may call: the exports of this one that are entry points.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/rpc/
import { defineEvent } from "../internal/events.js";
import { lazy } from "../internal/lazy.js";
import { createContext } from "./context.js";
import { currentEnv } from "./env.js";
import { readMeta } from "./events.js";
import { isEntrypointClass, WorkerEntrypoint } from "./handlers.js";
import { callMember, findMember, readMember } from "./members.js";

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
export function runEntrypoint(address) {
  const { entrypoint: name, props } = address;
  if (address.slot !== undefined) return lazy("objects/live.js").fetchObject(exports, address);
  return (request, call) => {
    const target = entrypoint(name);
    const context = createContext(call, props);
    const env = currentEnv();
    const handlers = isEntrypointClass(target) ? new target(context, env) : target;
    if (typeof handlers.fetch !== "function") throw new TypeError("Handler does not export a fetch() function.");
    return handlers.fetch(request, env, context);
  };
}

/** The function that runs a method for another worker: it gives { bytes, sent } of the result, see parcel.js. */
export function methodRunner(head, body) {
  const meta = readMeta(head);
  return (call) => runMethod(meta, body, call);
}

async function runMethod(meta, body, call) {
  if (meta.slot !== undefined) return runObjectMethod(meta, body, call);
  const Class = entrypoint(meta.entrypoint);
  if (!isEntrypointClass(Class)) {
    throw new TypeError("The receiver is not an RPC object: only classes that extend WorkerEntrypoint have methods to call.");
  }
  const { readValue, writeValue } = lazy("worker/parcel.js");
  const name = meta.method;
  const member = findMember(Class, WorkerEntrypoint, name);
  const instance = new Class(createContext(call, meta.props), currentEnv());
  const isRead = body === null || body.length === 0; // see service.js
  return writeValue(await (isRead ? readMember(member, instance, name) : callMember(member, instance, name, readValue(body))));
}

defineEvent("objectalarm", (target, address, body, call) => lazy("objects/live.js").runAlarm(exports, address, call), { isHandler: false });

async function runObjectMethod(meta, body, call) {
  const { readValue, writeValue } = lazy("worker/parcel.js");
  const isRead = body === null || body.length === 0;
  return writeValue(await lazy("objects/live.js").callObject(exports, meta, isRead ? null : readValue(body), call));
}
