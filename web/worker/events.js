// What a call may start besides fetch. Python sends a JSON object and bytes, and gets a JSON object or bytes back, once the
// handler and all that it gave to waitUntil() are done.
import { createExtendableEvent, dispatchGlobal, ExtendableEvent } from "../dom/global_scope.js";
import { Event } from "../internal/wire.gen.js";
import { createContext } from "./context.js";
import { currentEnv } from "./env.js";
import { isEntrypoint } from "./handlers.js";

/** event -> (target, meta, body, call) => what Python is told, or a promise of it. */
const EVENTS = { __proto__: null };

/** Say how an event is run. `target` is the default export of the worker, or null for a service-worker script. */
export function defineEvent(event, run) {
  EVENTS[event] = run;
}

/** The function that runs one event of a call. `head` is a line for the logs, then JSON. */
export function eventRunner(event, head, body, target) {
  const meta = JSON.parse(head.slice(head.indexOf("\n") + 1));
  const run = EVENTS[event];
  if (run === undefined) throw new TypeError(`There is no event ${event}.`);
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
  const event = createExtendableEvent(new ExtendableEvent(name), (promise) => call.waitUntil(promise));
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

/** https://developers.cloudflare.com/workers/runtime-apis/handlers/scheduled/ */
class ScheduledController {
  #cron;
  #scheduledTime;
  #noRetry = false;

  constructor({ cron, scheduledTime }) {
    this.#cron = cron;
    this.#scheduledTime = scheduledTime;
  }

  get cron() {
    return this.#cron;
  }

  get scheduledTime() {
    return this.#scheduledTime;
  }

  get type() {
    return "scheduled";
  }

  noRetry() {
    this.#noRetry = true;
  }

  static outcome(controller) {
    return { noRetry: controller.#noRetry };
  }
}

const scheduledOutcome = ScheduledController.outcome;
delete ScheduledController.outcome;

defineEvent(Event.SCHEDULED, async (target, meta, body, call) => {
  const controller = new ScheduledController(meta);
  await callHandler(target, "scheduled", controller, call);
  return scheduledOutcome(controller);
});
