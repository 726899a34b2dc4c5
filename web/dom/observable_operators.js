// The operators of an Observable: https://wicg.github.io/observable/#operators
//
// A source is here what it takes to subscribe to it: a function of an observer { next, error, complete } and a signal. What gives an
// Observable gives its algorithm, a function of its subscriber; `convert(value)` gives the source of a value that can be observed.
import { AbortController, addAbortAlgorithm, createDependentSignal } from "./abort.js";
import { reportException } from "./report.js";

/** What passes everything on. */
function mirror(subscriber) {
  return {
    next: (value) => subscriber.next(value),
    error: (error) => subscriber.error(error),
    complete: () => subscriber.complete(),
  };
}

/** Calls `body`; what it throws is the end of the subscription. True if it went well. */
function attempt(subscriber, body) {
  try {
    body();
    return true;
  } catch (error) {
    subscriber.error(error);
    return false;
  }
}

export function takeUntil(source, notifier) {
  return (subscriber) => {
    const end = () => subscriber.complete();
    notifier({ next: end, error: end, complete: () => {} }, subscriber.signal);
    if (subscriber.active) source(mirror(subscriber), subscriber.signal);
  };
}

export function map(source, mapper) {
  return (subscriber) => {
    let index = 0;
    const next = (value) => {
      let mapped;
      if (attempt(subscriber, () => (mapped = mapper(value, index++)))) subscriber.next(mapped);
    };
    source({ ...mirror(subscriber), next }, subscriber.signal);
  };
}

export function filter(source, predicate) {
  return (subscriber) => {
    let index = 0;
    const next = (value) => {
      let isWanted = false;
      if (attempt(subscriber, () => (isWanted = !!predicate(value, index++))) && isWanted) subscriber.next(value);
    };
    source({ ...mirror(subscriber), next }, subscriber.signal);
  };
}

export function take(source, amount) {
  return (subscriber) => {
    let remaining = amount;
    if (remaining === 0) {
      subscriber.complete();
      return;
    }
    const next = (value) => {
      subscriber.next(value);
      if (--remaining === 0) subscriber.complete();
    };
    source({ ...mirror(subscriber), next }, subscriber.signal);
  };
}

export function drop(source, amount) {
  return (subscriber) => {
    let remaining = amount;
    const next = (value) => {
      if (remaining > 0) remaining--;
      else subscriber.next(value);
    };
    source({ ...mirror(subscriber), next }, subscriber.signal);
  };
}

/** One inner source after the other: values that come meanwhile wait. */
export function flatMap(source, mapper, convert) {
  return (subscriber) => {
    const waiting = [];
    let index = 0;
    let isBusy = false;
    let isOver = false; // the source is
    const process = (value) => {
      let inner;
      if (!attempt(subscriber, () => (inner = convert(mapper(value, index++))))) return;
      const complete = () => {
        if (waiting.length > 0) process(waiting.shift());
        else {
          isBusy = false;
          if (isOver) subscriber.complete();
        }
      };
      inner({ ...mirror(subscriber), complete }, subscriber.signal);
    };
    const next = (value) => {
      if (isBusy) waiting.push(value);
      else {
        isBusy = true;
        process(value);
      }
    };
    const complete = () => {
      isOver = true;
      if (!isBusy && waiting.length === 0) subscriber.complete();
    };
    source({ ...mirror(subscriber), next, complete }, subscriber.signal);
  };
}

/** The newest inner source only. */
export function switchMap(source, mapper, convert) {
  return (subscriber) => {
    let index = 0;
    let current = null; // AbortController of the inner source
    let isOver = false;
    const next = (value) => {
      current?.abort();
      const controller = (current = new AbortController());
      let inner;
      if (!attempt(subscriber, () => (inner = convert(mapper(value, index++))))) return;
      const complete = () => {
        if (isOver) subscriber.complete();
        else current = null;
      };
      inner({ ...mirror(subscriber), complete }, createDependentSignal([controller.signal, subscriber.signal]));
    };
    const complete = () => {
      isOver = true;
      if (current === null) subscriber.complete();
    };
    source({ ...mirror(subscriber), next, complete }, subscriber.signal);
  };
}

/** `inspector`: what is told of the life of each subscription, before whoever subscribed. */
export function inspect(source, inspector) {
  return (subscriber) => {
    if (inspector.subscribe !== undefined && !attempt(subscriber, () => inspector.subscribe())) return;
    let onAbort = inspector.abort;
    addAbortAlgorithm(subscriber.signal, (reason) => {
      try {
        onAbort?.(reason);
      } catch (error) {
        reportException(error);
      }
    });
    const tell = (name, value, isLast) => {
      if (isLast) onAbort = undefined;
      try {
        inspector[name]?.(value);
        return true;
      } catch (error) {
        onAbort = undefined;
        subscriber.error(error);
        return false;
      }
    };
    source(
      {
        next: (value) => tell("next", value, false) && subscriber.next(value),
        error: (error) => tell("error", error, true) && subscriber.error(error),
        complete: () => tell("complete", undefined, true) && subscriber.complete(),
      },
      subscriber.signal,
    );
  };
}

export function catchError(source, callback, convert) {
  return (subscriber) => {
    const error = (reason) => {
      let inner;
      if (attempt(subscriber, () => (inner = convert(callback(reason))))) inner(mirror(subscriber), subscriber.signal);
    };
    source({ ...mirror(subscriber), error }, subscriber.signal);
  };
}

export function finallyDo(source, callback) {
  return (subscriber) => {
    subscriber.addTeardown(callback);
    source(mirror(subscriber), subscriber.signal);
  };
}

/**
 * A promise that an observer keeps: `observe({ resolve, reject, stop, guard })` gives its next() and complete(). `stop(reason)` ends the
 * subscription, `guard(body)` calls what a worker gave, which ends both if it throws.
 */
function promiseOf(source, signal, observe) {
  const controller = new AbortController();
  const own = signal === undefined ? controller.signal : createDependentSignal([controller.signal, signal]);
  const stop = (reason) => controller.abort(reason);
  return keep(source, own, (resolve, reject) => {
    const guard = (body) => {
      try {
        body();
      } catch (error) {
        reject(error);
        stop(error);
      }
    };
    return observe({ resolve, reject, stop, guard });
  });
}

/** The same for who never ends the subscription himself. */
function keep(source, signal, observe) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    if (signal !== undefined) addAbortAlgorithm(signal, reject);
    source({ error: reject, ...observe(resolve, reject) }, signal);
  });
}

export function toArray(source, signal) {
  return keep(source, signal, (resolve) => {
    const values = [];
    return { next: (value) => values.push(value), complete: () => resolve(values) };
  });
}

export function forEach(source, visitor, signal) {
  let index = 0;
  return promiseOf(source, signal, ({ resolve, guard }) => ({
    next: (value) => guard(() => visitor(value, index++)),
    complete: () => resolve(undefined),
  }));
}

/** every(), some() and find(): the first value of which `predicate` says `wanted` decides, as `outcome(value)`. */
export function search(source, predicate, signal, { wanted, outcome, otherwise }) {
  let index = 0;
  return promiseOf(source, signal, ({ resolve, stop, guard }) => ({
    next: (value) => guard(() => {
      if (!!predicate(value, index++) !== wanted) return;
      resolve(outcome(value));
      stop();
    }),
    complete: () => resolve(otherwise),
  }));
}

export function first(source, signal) {
  return promiseOf(source, signal, ({ resolve, reject, stop }) => ({
    next: (value) => {
      resolve(value);
      stop();
    },
    complete: () => reject(new RangeError("Observable.first: there was no value.")),
  }));
}

export function last(source, signal) {
  let found;
  return keep(source, signal, (resolve, reject) => ({
    next: (value) => (found = { value }),
    complete: () => (found === undefined ? reject(new RangeError("Observable.last: there was no value.")) : resolve(found.value)),
  }));
}

/** `initial`: { value }, or undefined without one. */
export function reduce(source, reducer, initial, signal) {
  let found = initial;
  let index = 0;
  return promiseOf(source, signal, ({ resolve, reject, guard }) => ({
    next: (value) => guard(() => {
      found = found === undefined ? { value } : { value: reducer(found.value, value, index) };
      index++;
    }),
    complete: () =>
      found === undefined ? reject(new TypeError("Observable.reduce: there was no value, and none to begin with.")) : resolve(found.value),
  }));
}
