// The module `cloudflare:workers`: gives `env` and waitUntil() to code that does not receive a handler's arguments.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/#importing-env-as-a-global
import { callOf, getStore, isolated, setStore } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { requireArguments, wrongArgument } from "../internal/webidl.js";
import { runningCall } from "./call.js";
import { DurableObject } from "../objects/base.js";
import { RpcPromise, RpcProperty, RpcStub, RpcTarget, ServiceStub } from "../rpc/stubs.js";
import { isOn } from "./compatibility.js";
import { ownExports } from "./context.js";
import { currentEnv } from "./env.js";
import { WorkerEntrypoint, WorkflowEntrypoint } from "./handlers.js";
import { tracing } from "./tracing.js";

/** Keeps the running call open until `promise` is settled. */
function waitUntil(promise) {
  requireArguments(arguments.length, 1, "waitUntil");
  const call = runningCall(callOf(native.getAsyncContext()));
  if (call === undefined) throw new Error("waitUntil() belongs to a request: it cannot be called by top-level code or after its end.");
  call.waitUntil(promise);
}

// Keys of what withEnv() and withExports() put in the place of the worker's own, for the code that they call and all that it starts.
const ENV = {};
const EXPORTS = {};

/** An object whose properties are those of what `find()` returns at the time. */
function view(find) {
  const traps = {};
  for (const name of ["defineProperty", "deleteProperty", "get", "getOwnPropertyDescriptor", "has", "ownKeys", "set"]) {
    // Receivers are left out: the properties are those of the other object.
    traps[name] = (target, ...rest) => Reflect[name](find(), ...rest.slice(0, name === "set" ? 2 : name === "get" ? 1 : rest.length));
  }
  return new Proxy({}, traps);
}

function within(name, stores, callback) {
  if (typeof callback !== "function") throw wrongArgument(name, stores.length, "function");
  return isolated(() => {
    for (const [key, value] of stores) setStore(key, Object(value));
    return callback();
  });
}

// https://developers.cloudflare.com/workers/runtime-apis/bindings/#overriding-env-values
const withEnv = (env, callback) => within("EnvModule.withEnv", [[ENV, env]], callback);
const withExports = (exports, callback) => within("EnvModule.withExports", [[EXPORTS, exports]], callback);
const withEnvAndExports = (env, exports, callback) => within("EnvModule.withEnvAndExports", [[ENV, env], [EXPORTS, exports]], callback);

function abortIsolate() {
  throw new Error("abortIsolate: a worker cannot end its isolate in Atoll.");
}

export function exportsOf() {
  const classes = { WorkerEntrypoint, DurableObject, WorkflowEntrypoint, RpcTarget, RpcStub, RpcPromise, RpcProperty, ServiceStub };
  // The code that imports this may still be running, so its exports are looked up when they are used.
  const own = view(() => getStore(EXPORTS) ?? ownExports() ?? {});
  const isHidden = isOn("disallow_importable_env");
  const none = {};
  const env = view(() => getStore(ENV) ?? (isHidden ? none : currentEnv()));
  // `cache` and `restore` belong to features that Cloudflare tries out. They are here so that code that imports them loads.
  const rest = { abortIsolate, cache: Object.freeze({}), restore: Symbol("restore"), tracing, withEnv, withEnvAndExports, withExports };
  const exports = { __proto__: null, env, exports: own, waitUntil, ...rest, ...classes };
  exports.default = { ...exports };
  return exports;
}
