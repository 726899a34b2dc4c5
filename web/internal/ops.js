// Ops: requests from the JavaScript half of a binding to its Python half.
//
// Each op has a name, defined here and in Python. The engine sends the list of names when it starts; on the wire an op is
// its index in that list. Every op gets exactly one reply.
import { ErrorClass } from "./wire.gen.js";
import { native } from "./native.js";
import { currentScope, currentSlot, pass } from "./scopes.js";

const TOO_MANY = 0xffffffff;
const TOO_LARGE = 0xfffffffe;
const TOO_MUCH = 0xfffffffd;

const names = [];
const indexes = new WeakMap(); // the function of an op -> its number
const waiting = new Map(); // op id -> { resolve, reject, scope, again }

// Classes that an error from Python may have; all other errors are plain Errors.
const CLASSES = { TypeError, RangeError, SyntaxError };

/** The names of all ops, in the order of their numbers, for the engine. */
export function opNames() {
  return names;
}

/**
 * `defineOp("kv.get")` returns a function `(meta, body?) => Promise<{ meta, body }>`; body is a Uint8Array. If the call ends before
 * the reply, the promise never settles, or rejects with `over` if that is given. The reply to an op that is not `gated` passes the
 * input gate of a Durable Object: what it brings waits there by itself.
 */
export function defineOp(name, over = undefined, { gated = true } = {}) {
  const index = names.push(name) - 1;
  const op = (meta, body = null) =>
    new Promise((resolve, reject) => {
      const id = native.op(index, JSON.stringify(meta), body);
      if (id === 0) {
        reject(new Error("Bindings can be used only while a request is handled, not by top-level code or after its end."));
        return;
      }
      if (id === TOO_MANY) {
        reject(new Error("Too many binding calls are under way in this request: wait for some of them first."));
        return;
      }
      if (id === TOO_LARGE) {
        reject(new RangeError("The binding call is too large: it may have 1 MB of names and options and 62 MB of data."));
        return;
      }
      if (id === TOO_MUCH) {
        reject(new RangeError("The binding calls under way in this worker hold 64 MB of data: wait for some of them first."));
        return;
      }
      waiting.set(id, { resolve, reject, scope: gated ? currentScope() : undefined, over, again: null });
    });
  indexes.set(op, index);
  return op;
}

/**
 * The same as `op(meta, body)`, for one that calls another worker through `binding`. If that worker is in this engine and nothing
 * speaks against it, the engine calls it, and the answer is { status, head, body }. Otherwise Python does: { meta, body }.
 * `binding` is the name of a way: that of a service binding, or with SP and an id that of an object. `first` and `lines`: the name of the method and "", or METHOD SP URL and header lines.
 */
export function callInside(op, meta, body, binding, isMethod, first, lines) {
  const id = native.inside(indexes.get(op), JSON.stringify(meta), body, binding, isMethod, first, lines, currentSlot());
  if (id === 0) return op(meta, body);
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject, scope: currentScope(), over: undefined, again: () => op(meta, body) }));
}

/** Whether code of a scope waits for the reply of an op. */
export function awaitsReply(scope) {
  for (const op of waiting.values()) if (op.scope === scope) return true;
  return false;
}

/**
 * Called by the engine with the reply. `failed` is null if the call that sent the op is over; the reply is dropped then. `meta` is
 * JSON from Python, or the status of a call inside the engine, whose head follows.
 */
export function onReply(id, failed, meta, body, head) {
  const op = waiting.get(id);
  if (op === undefined) return;
  waiting.delete(id);
  if (failed === null) {
    if (op.over !== undefined) op.reject(new Error(op.over));
    return;
  }
  const settle = typeof meta === "number" ? settleInside : settleOp;
  if (op.scope === undefined) settle(op, failed, meta, body, head);
  else pass(op.scope, () => settle(op, failed, meta, body, head));
}

/** `failed`: the other worker was unloaded before the call began. */
function settleInside(op, failed, status, body, head) {
  if (failed) op.again().then(op.resolve, op.reject);
  else if (body === null) op.reject(memoryIsFull());
  else op.resolve({ status, head, body });
}

function memoryIsFull() {
  return new RangeError("The worker's memory is full: the reply of the binding does not fit.");
}

function settleOp(op, failed, meta, body) {
  const fields = JSON.parse(meta);
  if (body === null) {
    op.reject(memoryIsFull());
    return;
  }
  if (!failed) {
    op.resolve({ meta: fields, body });
    return;
  }
  const Class = CLASSES[ErrorClass[fields.code]] ?? Error;
  op.reject(new Class(fields.message));
}
