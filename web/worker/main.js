// The entry point of the bundle. It runs once, while the snapshot is made: it installs the globals and returns the
// functions the engine calls. Everything after that happens in the engine's calls of those functions.
import { installGlobals } from "../globals.js";
import { finalize, tameFinalizers } from "../finalizers.js";
import { tameLanguage } from "../language.js";
import { startClock } from "../internal/clock.js";
import { lazy, prepareLazy, readAll } from "../internal/lazy.js";
import { defineBinding } from "../internal/bindings.js";
import { defineOp, opNames, onReply } from "../internal/ops.js";
import { Event } from "../internal/wire.gen.js";
import { builtIn } from "../node/modules.js";
import { chooseNodeGlobals, exposeNodeGlobals } from "../node/globals.js";
import { onRejection } from "../dom/rejections.js";
import { onTimer } from "../timers.js";
import { tameWebAssembly } from "../wasm.js";
import { Call, findCall } from "./call.js";
import { chooseGlobals } from "./chosen_globals.js";
import { setFlags } from "./compatibility.js";
import { currentEnv, makeEnv } from "./env.js";
import { methodRunner, runEntrypoint, setExports } from "./entrypoints.js";
import { eventRunner } from "./events.js";
import { moduleHandlers, scriptHandlers } from "./handlers.js";
import { runModule, runScript } from "./run_fetch.js";
import { warmUp } from "./warmup.js";

tameLanguage(globalThis);
tameFinalizers(globalThis);
installGlobals(globalThis);
exposeNodeGlobals(globalThis);

let run = null; // (request, call) => Response or promise, of the worker that was loaded
let target = null; // its default export; null for a service-worker script

/** The isolate has got its worker, none of whose code has run. */
function prepare(vars, grants, date, flags) {
  startClock();
  makeEnv(vars, grants);
  setFlags(date, flags);
  chooseNodeGlobals(globalThis);
  chooseGlobals(globalThis);
  tameWebAssembly();
}

/** The worker's code is a service-worker script: its variables and bindings are globals. */
function script() {
  for (const [name, value] of Object.entries(currentEnv())) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
  }
}

/** The worker's code has run: find its handlers. `exports` is undefined for a service-worker script. */
function load(exports) {
  if (exports === undefined) {
    run = runScript;
    target = null;
    return scriptHandlers().names;
  }
  const handlers = moduleHandlers(exports);
  setExports(exports);
  target = handlers.target;
  run = runModule(target, currentEnv());
  return handlers.names;
}

/** After the first line of the head there is a JSON object that names the entry point. */
function startEntrypoint(id, head, body, streaming) {
  const line = head.indexOf("\n") + 1;
  const end = head.indexOf("\n", line);
  const run = runEntrypoint(JSON.parse(head.slice(line, end)));
  new Call(id).start(run, head.slice(0, line) + head.slice(end + 1), body, streaming);
}

/** What the JavaScript half of a host program's binding is made with (atoll/bindings/host.py). */
export const host = { defineBinding, defineOp, lazy };

export const entry = {
  ops: opNames(),
  prepare,
  script,
  load,
  builtIn,
  rejection: onRejection,
  fetch(id, head, body, streaming) {
    new Call(id).start(run, head, body, streaming);
  },
  event(id, event, head, body, streaming) {
    if (event === Event.ENTRYPOINT) startEntrypoint(id, head, body, streaming);
    else if (event === Event.RPC) new Call(id).startMethod(methodRunner(head, body));
    else new Call(id).startEvent(eventRunner(head, body, target));
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
  sockets(slot, bytes) {
    lazy("objects/sockets.js").hearSockets(slot, bytes);
  },
  finalize,
  readAll,
  warm() {
    prepareLazy();
    prepare({ NAME: "value" }, [], "9999-12-31", []);
    warmUp(load, entry.fetch);
  },
};

entry.warm();
