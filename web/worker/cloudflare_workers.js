// The module `cloudflare:workers`: gives `env` and waitUntil() to code that does not receive a handler's arguments.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/#importing-env-as-a-global
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { requireArguments } from "../internal/webidl.js";
import { runningCall } from "./call.js";
import { DurableObject } from "../objects/base.js";
import { RpcPromise, RpcProperty, RpcStub, RpcTarget, ServiceStub } from "../rpc/stubs.js";
import { isOn } from "./compatibility.js";
import { ownExports } from "./context.js";
import { currentEnv } from "./env.js";
import { WorkerEntrypoint } from "./handlers.js";

/** Keeps the running call open until `promise` is settled. */
function waitUntil(promise) {
  requireArguments(arguments.length, 1, "waitUntil");
  const call = runningCall(callOf(native.getAsyncContext()));
  if (call === undefined) throw new Error("waitUntil() belongs to a request: it cannot be called by top-level code or after its end.");
  call.waitUntil(promise);
}

/** A class that projects extend at top level and that cannot be instantiated in Atoll. */
function absent(name, what) {
  const Absent = class {
    constructor() {
      throw new Error(`A ${name} cannot be made: Atoll has no ${what} yet.`);
    }
  };
  Object.defineProperty(Absent, "name", { value: name, configurable: true });
  return Absent;
}

const WorkflowEntrypoint = absent("WorkflowEntrypoint", "Workflows");

export function exportsOf() {
  const classes = { WorkerEntrypoint, DurableObject, WorkflowEntrypoint, RpcTarget, RpcStub, RpcPromise, RpcProperty, ServiceStub };
  // The code that imports this may still be running, so its exports are looked up when they are used.
  const own = new Proxy({}, { get: (target, name) => ownExports()?.[name], has: (target, name) => name in (ownExports() ?? {}) });
  const env = isOn("disallow_importable_env") ? {} : currentEnv();
  const exports = { __proto__: null, env, exports: own, waitUntil, ...classes };
  exports.default = { ...exports };
  return exports;
}
