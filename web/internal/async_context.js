// What V8 carries through promises, and timers.js through timers: whose call the code belongs to, and the stores of
// AsyncLocalStorage.
//
// As long as a worker uses no store it is the number of the call, or undefined in top-level code: nothing to allocate. With
// stores it is the array [number, stores], where `stores` is a Map that is never changed, only replaced. The engine reads
// the number (Worker::CurrentCall), which no later call of the worker ever has (engine/src/calls.h); no worker ever sees the
// array.
import { native } from "./native.js";

const isArray = Array.isArray;
const { getAsyncContext, setAsyncContext } = native;

/** The number of the call a context belongs to. */
export function callOf(context) {
  return isArray(context) ? context[0] : context;
}

function storesOf(context) {
  return isArray(context) ? context[1] : null;
}

/** What `key` stands for in the running code; undefined without a value. */
export function getStore(key) {
  const context = getAsyncContext();
  return isArray(context) ? context[1].get(key) : undefined;
}

export function hasStore(key) {
  const context = getAsyncContext();
  return isArray(context) && context[1].has(key);
}

/** From here on, and in all that follows from here, `key` stands for `value`. */
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

/** Calls `body` with what it sets undone afterwards. */
export function isolated(body) {
  const before = getAsyncContext();
  try {
    return body();
  } finally {
    setAsyncContext(before);
  }
}

/** The stores of this moment, for `withStores`. */
export function captureStores() {
  return storesOf(getAsyncContext());
}

/** Calls `body` with the stores of another moment. The call stays the one that runs: what it does is still charged to it. */
export function withStores(stores, body) {
  const before = getAsyncContext();
  setAsyncContext(stores === null ? callOf(before) : [callOf(before), stores]);
  try {
    return body();
  } finally {
    setAsyncContext(before);
  }
}
