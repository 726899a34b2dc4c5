// Unhandled promise rejections.
// https://html.spec.whatwg.org/multipage/webappapis.html#unhandled-promise-rejections
import { PromiseRejectionEvent } from "./event.js";
import { countListeners, fireEvent } from "./event_target.js";

let outstanding = null; // WeakSet of promises whose rejection was reported and that are still unhandled

/** https://html.spec.whatwg.org/multipage/webappapis.html#notify-about-rejected-promises, for one promise. True: log it. */
function notifyRejected(promise, reason) {
  (outstanding ??= new WeakSet()).add(promise);
  if (countListeners(globalThis, "unhandledrejection") === 0) return true;
  return fireEvent(globalThis, new PromiseRejectionEvent("unhandledrejection", { cancelable: true, promise, reason }));
}

/** https://html.spec.whatwg.org/multipage/webappapis.html#the-hostpromiserejectiontracker-implementation, for "handle". */
function notifyHandled(promise, reason) {
  if (outstanding === null || !outstanding.delete(promise)) return;
  if (countListeners(globalThis, "rejectionhandled") === 0) return;
  fireEvent(globalThis, new PromiseRejectionEvent("rejectionhandled", { promise, reason }));
}

/** Called by the engine after the microtasks of a turn. True if the engine should log the rejection. */
export function onRejection(promise, reason, handledLate) {
  if (!handledLate) return notifyRejected(promise, reason);
  notifyHandled(promise, reason);
  return false;
}
