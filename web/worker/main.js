// The entry point of the bundle. It runs once, while the snapshot is made: it installs the globals and returns the
// functions the engine calls. Everything after that happens in the engine's calls of those functions.
import { installGlobals } from "../globals.js";
import { startClock } from "../internal/clock.js";
import { opNames, onReply } from "../internal/ops.js";
import { onTimer } from "../timers.js";
import { Call, findCall, runModule, runScript } from "./call.js";
import { makeEnv } from "./env.js";
import { moduleHandlers, scriptHandlers } from "./handlers.js";
import { warmUp } from "./warmup.js";

installGlobals(globalThis);

let run = null; // (request, call) => Response or promise, of the worker that was loaded

/** The worker's code has run: find its handlers. `exports` is undefined for a service-worker script. */
function load(exports, vars, grants) {
  startClock();
  const env = makeEnv(vars, grants);
  if (exports === undefined) {
    // In service-worker syntax variables and bindings are globals.
    for (const name of Object.keys(env)) {
      Object.defineProperty(globalThis, name, { value: env[name], writable: true, configurable: true, enumerable: true });
    }
    const { names } = scriptHandlers();
    run = runScript;
    return names;
  }
  const { target, names } = moduleHandlers(exports);
  run = runModule(target, env);
  return names;
}

export const entry = {
  ops: opNames(),
  load,
  fetch(id, head, body, streaming) {
    new Call(id).start(run, head, body, streaming);
  },
  body(id, chunk) {
    findCall(id)?.incoming?.push(chunk);
  },
  credit(id) {
    findCall(id)?.outgoing?.resume();
  },
  cancel(id, atOnce) {
    const call = findCall(id) ?? new Call(id);
    call.cancel(atOnce);
  },
  reply: onReply,
  timer: onTimer,
  warm() {
    warmUp(load, entry.fetch);
  },
};

entry.warm();
