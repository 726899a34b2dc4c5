// What another worker may call: the exports of this one that are entry points.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/rpc/
import { defineEvent } from "../internal/events.js";
import { lazy } from "../internal/lazy.js";
import { createContext, setOwnExports } from "./context.js";
import { currentEnv } from "./env.js";
import { readMeta } from "./events.js";
import { isEntrypointClass } from "./handlers.js";

let exports = { __proto__: null };

/** The module's exports, once its code has run. */
export function setExports(value) {
  exports = value;
  setOwnExports(value);
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

/** The function that runs a method for another worker: it gives { bytes, sent, isKept } of the result, see parcel.js. */
export function methodRunner(head, body) {
  const meta = readMeta(head);
  return (call) => runMethod(meta, body, call);
}

async function runMethod(meta, body, call) {
  const reach = meta.slot === undefined ? reachEntrypoint(meta, call) : lazy("objects/live.js").reachObject(exports, meta, call);
  const isRead = body === null || body.length === 0; // see rpc/service_stub.js
  const path = meta.path === undefined ? [meta.method] : [meta.method, ...meta.path];
  const { isPlain, isPrimitive, readValue, writeValue } = lazy("worker/parcel.js");
  const { channelOf } = lazy("rpc/channel.js");
  let session;
  let written;
  if (isRead || isPlain(body)) {
    const value = await reach(path, isRead ? null : readValue(body, null).value);
    if (isPrimitive(value)) return writeValue(value, null, true); // needs no session
    session = channelOf(call).inbound();
    written = session.answerMain(value);
  } else {
    const channel = channelOf(call);
    session = channel.inbound();
    const read = readValue(body, session);
    written = await session.answer(0, read, reach(path, read.value));
    if (written === null) return { bytes: new Uint8Array(0), sent: [], isKept: false }; // the caller is gone
    if (session.hasImports) channel.attach();
  }
  const sent = session.isHeld ? [...written.sent, session.untilFree()] : written.sent;
  return { bytes: written.bytes, sent, isKept: written.isKept };
}

/** How a member of an entry point is called, or read if `args` is null. */
function reachEntrypoint(meta, call) {
  const target = entrypoint(meta.entrypoint);
  const context = createContext(call, meta.props);
  return (path, args) => use(target, path, args, context);
}

async function use(target, path, args, context) {
  const { useEntrypoint, useHandlers } = lazy("rpc/members.js");
  const env = currentEnv();
  if (isEntrypointClass(target)) return useEntrypoint(new target(context, env), path, args);
  if (typeof target === "object" && target !== null) return useHandlers(target, path, args, env, context);
  throw new TypeError("The receiver is not an RPC object: only classes that extend WorkerEntrypoint, and objects, have methods to call.");
}

defineEvent("objectalarm", (target, address, body, call) => lazy("objects/live.js").runAlarm(exports, address, call), { isHandler: false });
defineEvent("objectconsole", (target, address, body) => lazy("objects/live.js").runConsole(exports, address, body), { isHandler: false });
defineEvent("objectlife", (target, address, body, call) => lazy("objects/live.js").runLife(address, call), { isHandler: false });
defineEvent("objectsocket", (target, address, body, call) => lazy("objects/live.js").runSocket(exports, address, body, call), { isHandler: false });
