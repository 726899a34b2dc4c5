// How a request reaches the code of a worker.
import { createFetchEvent, dispatchGlobal, responseOf } from "../dom/global_scope.js";
import { createContext } from "./context.js";
import { isEntrypoint } from "./handlers.js";

function refuseFetch() {
  throw new TypeError("Handler does not export a fetch() function.");
}

/** Runs the `fetch` of a module worker's default export. */
export function runModule(target, env) {
  const isClass = isEntrypoint(target);
  if (typeof (isClass ? target.prototype : target).fetch !== "function") return refuseFetch;
  if (isClass) return (request, call) => new target(createContext(call), env).fetch(request);
  return (request, call) => target.fetch(request, env, createContext(call));
}

/** Runs the `fetch` listeners of a service-worker script. */
export function runScript(request, call) {
  const passThrough = () => {
    call.passesThrough = true;
  };
  const event = createFetchEvent(request, (promise) => call.waitUntil(promise), passThrough);
  let failure;
  dispatchGlobal(event, (error) => {
    failure ??= { error };
  });
  const response = responseOf(event);
  if (response === undefined && failure !== undefined) throw failure.error;
  if (response === undefined) throw new TypeError("No fetch listener called event.respondWith().");
  return response;
}
