// Conversions to an Observable: https://wicg.github.io/observable/#observable-convert-to-an-observable
//
// Each returns an algorithm: a function that sends values to a Subscriber.
import { addAbortAlgorithm } from "./abort.js";
import { native } from "../internal/native.js";

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** https://tc39.es/ecma262/#sec-getmethod */
function getMethod(object, key) {
  const method = object[key];
  if (method === undefined || method === null) return undefined;
  if (typeof method !== "function") throw new TypeError(`Observable.from: ${String(key)} is not a function.`);
  return method;
}

function requireObject(value, what) {
  if (!isObject(value)) throw new TypeError(`Observable.from: ${what} must be an Object.`);
  return value;
}

/** The algorithm for a value that is not an Observable; undefined if the value cannot be observed. */
export function algorithmOf(value) {
  if (getMethod(value, Symbol.asyncIterator) !== undefined) return (subscriber) => observeAsync(value, subscriber);
  if (getMethod(value, Symbol.iterator) !== undefined) return (subscriber) => observeIterable(value, subscriber);
  return isPromise(value) ? (subscriber) => observePromise(value, subscriber) : undefined;
}

function isPromise(value) {
  try {
    native.promiseState(value);
    return true;
  } catch {
    return false;
  }
}

function observePromise(promise, subscriber) {
  promise.then(
    (value) => {
      subscriber.next(value);
      subscriber.complete();
    },
    (reason) => subscriber.error(reason),
  );
}

/** https://tc39.es/ecma262/#sec-getiterator */
function getIterator(value, method) {
  if (method === undefined) throw new TypeError("Observable.from: the object is not iterable any more.");
  return requireObject(method.call(value), "what an iterable gives");
}

/** https://tc39.es/ecma262/#sec-iteratorclose */
function closeIterator(record, ...reason) {
  record.isDone = true;
  const method = getMethod(record.iterator, "return");
  return method === undefined ? {} : method.call(record.iterator, ...reason);
}

const BAD_RETURN = "what return() gives";

function observeIterable(value, subscriber) {
  const { signal } = subscriber;
  if (signal.aborted) return;
  let record;
  try {
    const iterator = getIterator(value, getMethod(value, Symbol.iterator));
    record = { iterator, next: iterator.next, isDone: false };
  } catch (error) {
    subscriber.error(error);
    return;
  }
  if (signal.aborted) return;
  addAbortAlgorithm(signal, () => {
    if (!record.isDone) requireObject(closeIterator(record), BAD_RETURN);
  });
  while (!signal.aborted) {
    let item;
    try {
      const step = requireObject(record.next.call(record.iterator), "what next() gives");
      record.isDone = !!step.done;
      if (!record.isDone) item = step.value;
    } catch (error) {
      record.isDone = true;
      subscriber.error(error);
      return;
    }
    if (record.isDone) {
      subscriber.complete();
      return;
    }
    subscriber.next(item);
  }
}

/** https://tc39.es/ecma262/#sec-createasyncfromsynciterator */
function asyncFromSync(iterator) {
  const { next } = iterator;
  const settle = (step) => {
    const { done, value } = requireObject(step, "what next() gives");
    return Promise.resolve(value).then((settled) => ({ done, value: settled }));
  };
  return {
    next: async () => settle(next.call(iterator)),
    return: async () => {
      const method = getMethod(iterator, "return");
      return method === undefined ? {} : settle(method.call(iterator));
    },
  };
}

function getAsyncIterator(value) {
  const method = getMethod(value, Symbol.asyncIterator);
  return method === undefined ? asyncFromSync(getIterator(value, getMethod(value, Symbol.iterator))) : getIterator(value, method);
}

function observeAsync(value, subscriber) {
  const { signal } = subscriber;
  if (signal.aborted) return;
  let record;
  try {
    record = { iterator: getAsyncIterator(value), next: null, isDone: false };
  } catch (error) {
    subscriber.error(error);
    return;
  }
  if (signal.aborted) return;
  // An error in return() becomes an unhandled rejection.
  addAbortAlgorithm(signal, async (reason) => {
    if (!record.isDone) requireObject(await closeIterator(record, reason), BAD_RETURN);
  });
  takeNext(record, subscriber);
}

function takeNext(record, subscriber) {
  if (subscriber.signal.aborted) return;
  const fail = (error) => {
    record.isDone = true;
    subscriber.error(error);
  };
  // An error of the getter `next` becomes a rejection too.
  new Promise((resolve) => resolve((record.next ??= record.iterator.next).call(record.iterator))).then((step) => {
    let item;
    try {
      requireObject(step, "what next() gives");
      const isDone = !!step.done;
      record.isDone ||= isDone;
      if (!isDone) item = step.value;
      else {
        subscriber.complete();
        return;
      }
    } catch (error) {
      fail(error);
      return;
    }
    subscriber.next(item);
    takeNext(record, subscriber);
  }, fail);
}
