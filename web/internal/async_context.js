// The async context: the id of the call that code belongs to, and the stores of AsyncLocalStorage. V8 carries it through
// promises, timers.js through timers.
//
// Without stores the context is the call's id, or undefined in top-level code, and allocates nothing. With stores it is the
// array [id, stores], where `stores` is a Map that is replaced and never changed. The engine reads the id (Worker::CurrentCall);
// no later call of the worker has the same one (engine/src/worker/calls.h). A worker never sees the array.
import { native } from "./native.js";

const isArray = Array.isArray;
const { getAsyncContext, setAsyncContext } = native;

/** The id of the call that a context belongs to. */
export function callOf(context) {
  return isArray(context) ? context[0] : context;
}

/** The same context in another call. */
export function inCall(context, id) {
  return isArray(context) ? [id, context[1]] : id;
}

function storesOf(context) {
  return isArray(context) ? context[1] : null;
}

/** The value of `key` in the running code, or undefined. */
export function getStore(key) {
  const context = getAsyncContext();
  return isArray(context) ? context[1].get(key) : undefined;
}

export function hasStore(key) {
  const context = getAsyncContext();
  return isArray(context) && context[1].has(key);
}

/** Sets `key` to `value` for the code that follows and everything it starts. */
export function setStore(key, value) {
  const context = getAsyncContext();
  const stores = new Map(storesOf(context));
  stores.set(key, value);
  setAsyncContext([callOf(context), stores]);
}

export function deleteStore(key) {
  const context = getAsyncContext();
  if (!isArray(context) || !context[1].has(key)) return;
  const stores = new Map(context[1]);
  stores.delete(key);
  setAsyncContext(stores.size === 0 ? context[0] : [context[0], stores]);
}

/** Calls `body` and restores the stores afterwards. */
export function isolated(body) {
  const before = getAsyncContext();
  try {
    return body();
  } finally {
    setAsyncContext(before);
  }
}

/** The current stores, for `withStores`. */
export function captureStores() {
  return storesOf(getAsyncContext());
}

/** Calls `body` with captured stores. The call stays the same, so the work is still charged to it. */
export function withStores(stores, body) {
  const before = getAsyncContext();
  setAsyncContext(stores === null ? callOf(before) : [callOf(before), stores]);
  try {
    return body();
  } finally {
    setAsyncContext(before);
  }
}
