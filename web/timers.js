// https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#timers
//
// The engine knows when; this file knows what. It is given a number to remember (native.setTimer) and calls onTimer with it.
import { reportException } from "./dom/report.js";
import { callOf } from "./internal/async_context.js";
import { native } from "./internal/native.js";
import { requireArguments, toDOMString } from "./internal/webidl.js";

const LONGEST = 2 ** 31 - 1;

const timers = new Map(); // id -> { callback, args, context, interval (or -1) }
let nextId = 1;

function start(callback, args, delay, interval) {
  const id = nextId++;
  timers.set(id, { callback, args, context: native.getAsyncContext(), interval });
  const set = native.setTimer(id, delay);
  if (set === false || set === null) timers.delete(id); // null: of a call that is over, whose timers are gone
  if (set === false) throw new RangeError("Too many timers are set; clear some first.");
  return id;
}

const evaluate = globalThis.eval; // called by another name it runs code in the global scope
const CodeFunction = Function;

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#timer-initialisation-steps */
function toHandler(handler, where) {
  if (typeof handler === "function") return handler;
  const code = toDOMString(handler);
  try {
    CodeFunction(""); // whether code may be made from strings
  } catch {
    throw new EvalError(`${where}: the handler must be a function; this worker may not run code in a string (switch allow_eval).`);
  }
  return () => evaluate(code);
}

// The `long` of Web IDL, where what is negative is at once.
function toDelay(value) {
  return Math.max(0, value | 0);
}

/** Called by the engine when a timer is due. */
export function onTimer(id) {
  const timer = timers.get(id);
  if (timer === undefined) return;
  if (timer.interval === -1) timers.delete(id);
  const before = native.getAsyncContext();
  native.setAsyncContext(timer.context);
  try {
    timer.callback.apply(globalThis, timer.args);
  } catch (error) {
    reportException(error);
  }
  // The callback may have cleared its own interval. Set again in its own context: the engine asks whose timer it is.
  if (timer.interval !== -1 && timers.has(id) && native.setTimer(id, timer.interval) !== true) timers.delete(id);
  native.setAsyncContext(before);
}

/** Called when a call is over and the engine has cleared its timers: forget them. */
export function dropTimers(call) {
  for (const [id, timer] of timers) if (callOf(timer.context) === call) timers.delete(id);
}

/** A timer of the platform's own, in the async context of whoever asked. */
export function startTimer(callback, delay) {
  return start(callback, [], Math.min(delay, LONGEST), -1);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-settimeout */
export function setTimeout(handler, timeout = 0, ...args) {
  requireArguments(arguments.length, 1, "setTimeout");
  return start(toHandler(handler, "setTimeout"), args, toDelay(timeout), -1);
}

/** https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#dom-setinterval */
export function setInterval(handler, timeout = 0, ...args) {
  requireArguments(arguments.length, 1, "setInterval");
  // At least a millisecond, or an interval of nothing would leave no turn to anybody else.
  const delay = Math.max(1, toDelay(timeout));
  return start(toHandler(handler, "setInterval"), args, delay, delay);
}

/** Node's: as soon as the current turn is over. */
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
  requireArguments(arguments.length, 1, "queueMicrotask");
  if (typeof callback !== "function") throw new TypeError("queueMicrotask: the callback must be a function.");
  native.enqueueMicrotask(() => {
    try {
      callback();
    } catch (error) {
      reportException(error);
    }
  });
}
