// What another worker may call: the exports of this one that are entry points.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/rpc/
import { lazy } from "../internal/lazy.js";
import { createContext } from "./context.js";
import { currentEnv } from "./env.js";
import { readMeta } from "./events.js";
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

/** A method or getter of the class itself or of one it extends; neither of Object's nor of an instance. */
function findMember(Class, name) {
  if (RESERVED.has(name)) throw new TypeError(`'${name}' is a reserved method and cannot be called over RPC.`);
  for (let at = Class.prototype; at !== WorkerEntrypoint.prototype && at !== null; at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, name);
    if (found !== undefined) return found;
  }
  throw new TypeError(`The RPC receiver does not implement the method "${name}".`);
}

function readMember({ get, value }, instance, name) {
  if (typeof value === "function") {
    throw new TypeError(`"${name}" is a method: call it. A function itself cannot be sent to another worker yet.`);
  }
  return get === undefined ? value : get.call(instance);
}

function callMember({ get, value }, instance, name, args) {
  const method = get === undefined ? value : get.call(instance);
  if (typeof method !== "function") throw new TypeError(`"${name}" is not a function.`);
  return method.apply(instance, args);
}

/** The function that runs a method for another worker: it gives { bytes, sent } of the result, see parcel.js. */
export function methodRunner(head, body) {
  const meta = readMeta(head);
  return (call) => runMethod(meta, body, call);
}

async function runMethod(meta, body, call) {
  const Class = entrypoint(meta.entrypoint);
  if (!isEntrypointClass(Class)) {
    throw new TypeError("The receiver is not an RPC object: only classes that extend WorkerEntrypoint have methods to call.");
  }
  const { readValue, writeValue } = lazy("worker/parcel.js");
  const name = meta.method;
  const member = findMember(Class, name);
  const instance = new Class(createContext(call, meta.props), currentEnv());
  const isRead = body === null || body.length === 0; // see service.js
  return writeValue(await (isRead ? readMember(member, instance, name) : callMember(member, instance, name, readValue(body))));
}
