// Ops: how a binding's JavaScript half asks its Python half for something.
//
// A name is said once here and once in Python; the engine sends the list of names when it starts, and on the wire an op
// is its place in that list. Every op is answered exactly once.
import { ErrorClass } from "./wire.gen.js";
import { native } from "./native.js";

const TOO_MANY = 0xffffffff;
const TOO_LARGE = 0xfffffffe;
const TOO_MUCH = 0xfffffffd;

const names = [];
const waiting = new Map(); // op id -> { resolve, reject }

// Only errors of these classes are made from what Python says; all others are plain Errors.
const CLASSES = { TypeError, RangeError, SyntaxError };

/** The names of all ops in the order of their numbers, for the engine. */
export function opNames() {
  return names;
}

/** `defineOp("kv.get")` gives a function `(meta, body?) => Promise<{ meta, body }>`; body is a Uint8Array. */
export function defineOp(name) {
  const index = names.push(name) - 1;
  return (meta, body = null) =>
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
        reject(new RangeError("What was given to the binding is too large: 1 MB of names and options and 62 MB of data are the most."));
        return;
      }
      if (id === TOO_MUCH) {
        reject(new RangeError("The binding calls of this worker that are under way hold 64 MB of data: wait for some of them first."));
        return;
      }
      waiting.set(id, { resolve, reject });
    });
}

/** Called by the engine with the answer; `failed` is null when the call is over that asked, and nobody is to hear it. */
export function onReply(id, failed, meta, body) {
  const op = waiting.get(id);
  if (op === undefined) return;
  waiting.delete(id);
  if (failed === null) return;
  const fields = JSON.parse(meta);
  if (body === null) {
    op.reject(new RangeError("The memory of the worker is full: what the binding answered does not fit."));
    return;
  }
  if (!failed) {
    op.resolve({ meta: fields, body });
    return;
  }
  const Class = CLASSES[ErrorClass[fields.code]] ?? Error;
  op.reject(new Class(fields.message));
}
