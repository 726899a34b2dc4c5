// https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#timers
//
// The engine keeps the time, this file keeps the callbacks. The engine gets an id (native.setTimer) and calls onTimer with it.
import { DOMException } from "./dom/exception.js";
import { reportException } from "./dom/report.js";
import { callOf, inCall } from "./internal/async_context.js";
import { native } from "./internal/native.js";
import { currentScope, pass } from "./internal/scopes.js";
import { requireArguments, toDOMString, wrongArgument } from "./internal/webidl.js";

const timers = new Map(); // id -> { callback, args, context, interval (or -1), scope }
let nextId = 1;
let finished = 0; // timeouts that have fired
const TOO_MANY = "You have exceeded the number of active timeouts you may set. max active timeouts: 10000, current active timeouts: 10000";

function start(callback, args, delay, interval) {
  const id = nextId++;
  timers.set(id, { callback, args, context: native.getAsyncContext(), interval, scope: currentScope() });
  const set = native.setTimer(id, delay);
  if (set !== true) timers.delete(id); // null: the call is over and its timers are gone
  if (set === false) throw new DOMException(`${TOO_MANY}, finished timeouts: ${finished}`, "QuotaExceededError");
  if (typeof set === "number") throw new RangeError(`A timer of ${delay} ms is too long: this node allows ${set} ms (timer_ms).`);
  return id;
}

const evaluate = globalThis.eval; // an indirect call, which runs code in the global scope
const CodeFunction = Function;

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#timer-initialisation-steps */
function toHandler(handler, where) {
  if (typeof handler === "function") return handler;
  const code = toDOMString(handler);
  try {
    CodeFunction(""); // throws if code from strings is not allowed
  } catch {
    throw new EvalError(`${where}: the handler must be a function; this worker may not run code in a string (switch allow_eval).`);
  }
  return () => evaluate(code);
}

// Negative delays become 0. Not converted to `long` of Web IDL, where 2 ** 31 would become negative: a timer never fires early.
export function toDelay(value) {
  const delay = Math.trunc(Number(value));
  return delay > 0 ? delay : 0;
}

/** Called by the engine when a timer is due. */
export function onTimer(id) {
  const timer = timers.get(id);
  if (timer === undefined) return;
  pass(timer.scope, () => fire(id, timer));
}

function fire(id, timer) {
  if (timers.get(id) !== timer) return; // cleared while it waited
  if (timer.interval === -1) {
    timers.delete(id);
    finished++;
  }
  const before = native.getAsyncContext();
  native.setAsyncContext(timer.context);
  try {
    timer.callback.apply(globalThis, timer.args);
  } catch (error) {
    reportException(error);
  }
  // Not if the callback cleared its interval. The timer is set in its own context, from which the engine reads its call.
  if (timer.interval !== -1 && timers.has(id) && native.setTimer(id, timer.interval) !== true) timers.delete(id);
  native.setAsyncContext(before);
}

/** Forgets the timers of a call that is over. The engine has cleared them. */
export function dropTimers(call) {
  for (const [id, timer] of timers) if (callOf(timer.context) === call) timers.delete(id);
}

/** Gives the timers of a call to the running call. */
export function adoptTimers(from) {
  const heir = callOf(native.getAsyncContext());
  for (const [id, timer] of timers) {
    if (callOf(timer.context) === from && native.adoptTimer(id)) timer.context = inCall(timer.context, heir);
  }
}

/** A timer of the platform, in the async context of the caller. */
export function startTimer(callback, delay) {
  return start(callback, [], delay, -1);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-settimeout */
export function setTimeout(handler, timeout = 0, ...args) {
  requireArguments(arguments.length, 1, "setTimeout");
  return start(toHandler(handler, "setTimeout"), args, toDelay(timeout), -1);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-setinterval */
export function setInterval(handler, timeout = 0, ...args) {
  requireArguments(arguments.length, 1, "setInterval");
  // At least 1 ms between two calls: an interval of 0 would leave no time for anything else.
  const delay = toDelay(timeout);
  return start(toHandler(handler, "setInterval"), args, delay, Math.max(1, delay));
}

/** Node's setImmediate: runs after the current turn. */
export function setImmediate(handler, ...args) {
  requireArguments(arguments.length, 1, "setImmediate");
  return start(toHandler(handler, "setImmediate"), args, 0, -1);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-cleartimeout */
export function clearTimeout(id = 0) {
  const number = Number(id);
  if (timers.delete(number)) native.clearTimer(number);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-clearinterval: the same list of timers. */
export function clearInterval(id = 0) {
  clearTimeout(id);
}

export function clearImmediate(id = 0) {
  clearTimeout(id);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-queuemicrotask */
export function queueMicrotask(callback) {
  requireArguments(arguments.length, 1, "queueMicrotask", "function");
  if (typeof callback !== "function") throw wrongArgument("queueMicrotask", 0, "function");
  native.enqueueMicrotask(() => {
    try {
      callback();
    } catch (error) {
      reportException(error);
    }
  });
}
