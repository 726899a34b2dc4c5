// The module `cloudflare:workers`: gives `env` and waitUntil() to code that does not receive a handler's arguments.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/#importing-env-as-a-global
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { requireArguments } from "../internal/webidl.js";
import { runningCall } from "./call.js";
import { DurableObject } from "../objects/base.js";
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
const RpcTarget = absent("RpcTarget", "stubs of objects that stay with their worker");

export function exportsOf() {
  const exports = { __proto__: null, env: currentEnv(), waitUntil, WorkerEntrypoint, DurableObject, WorkflowEntrypoint, RpcTarget };
  exports.default = { ...exports };
  return exports;
}
