// The events that bindings deliver to workers. A binding's JavaScript half says how each is run; worker/events.js runs it.

/** name -> (target, meta, body, call) => the result for Python, or a promise of it. */
const runs = { __proto__: null };
const handlers = [];

/**
 * Define the event `name`, which is also the name of the handler that a worker exports for it. `run` gets the default
 * export of the worker as `target`, or null for a service-worker script. With `isHandler` false, no export is called like it.
 */
export function defineEvent(name, run, { isHandler = true } = {}) {
  if (name in runs) throw new Error(`There are two events of the name ${name}.`);
  runs[name] = run;
  if (isHandler) handlers.push(name);
}

export function runOfEvent(name) {
  return runs[name];
}

/** The handlers that a worker may export for events. */
export function eventHandlers() {
  return handlers;
}
