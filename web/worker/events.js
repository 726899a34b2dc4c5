// Events besides fetch that start a call. Python sends a JSON object and bytes, and receives a JSON object or bytes once the
// handler and all its waitUntil() promises have finished.
import { createExtendableEvent, dispatchGlobal } from "../dom/global_scope.js";
import { runOfEvent } from "../internal/events.js";
import { lazy } from "../internal/lazy.js";
import { createContext } from "./context.js";
import { currentEnv } from "./env.js";
import { isEntrypoint } from "./handlers.js";

/** The JSON object of a head: it follows the line for the logs. */
export function readMeta(head) {
  return JSON.parse(head.slice(head.indexOf("\n") + 1));
}

/** The function that runs one event of a call. `head` is the name of the event, a space, a line for the logs, then JSON. */
export function eventRunner(head, body, target) {
  const name = head.slice(0, head.indexOf(" "));
  const run = runOfEvent(name);
  if (run === undefined) throw new TypeError(`There is no event ${name}.`);
  const meta = readMeta(head);
  return (call) => run(target, meta, body, call);
}

/** Calls handler `name` of the default export with `value`, as each kind of worker expects it. */
export function callHandler(target, name, value, call) {
  if (target === null) return dispatchToScript(name, value, call);
  const context = createContext(call);
  const env = currentEnv();
  const handlers = isEntrypoint(target) ? new target(context, env) : target;
  if (typeof handlers[name] !== "function") {
    throw new TypeError(`Handler does not export a ${name}() function.`);
  }
  return handlers[name](value, env, context);
}

/** In a service-worker script the fields of `value` are those of the event. */
function dispatchToScript(name, value, call) {
  const event = createExtendableEvent(name, (promise) => call.waitUntil(promise), lazy("dom/trigger_events.js").classOfEvent(name));
  if (Array.isArray(value)) event.events = value;
  else copyFields(value, event);
  let failure;
  dispatchGlobal(event, (error) => {
    failure ??= { error };
  });
  if (failure !== undefined) throw failure.error;
}

function copyFields(value, event) {
  const fields = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(value));
  delete fields.constructor;
  for (const key of Object.keys(fields)) {
    const { get, value: method } = fields[key];
    const read = get === undefined ? () => method.bind(value) : get.bind(value);
    Object.defineProperty(event, key, { get: read, enumerable: true, configurable: true });
  }
}
