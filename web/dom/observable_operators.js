// The operators of an Observable: https://wicg.github.io/observable/#operators
//
// A source is a function that subscribes: it takes an observer { next, error, complete } and a signal. Operators that return an
// Observable return its algorithm, a function of a Subscriber. `convert(value)` returns the source of an observable value.
import { AbortController, addAbortAlgorithm, createDependentSignal } from "./abort.js";
import { reportException } from "./report.js";

/** An observer that forwards everything. */
function mirror(subscriber) {
  return {
    next: (value) => subscriber.next(value),
    error: (error) => subscriber.error(error),
    complete: () => subscriber.complete(),
  };
}

/** Calls `body`. If it throws, the subscription ends with the error. True if it did not throw. */
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

/** Subscribes to one inner source after the other. Values that arrive in the meantime are queued. */
export function flatMap(source, mapper, convert) {
  return (subscriber) => {
    const waiting = [];
    let index = 0;
    let isBusy = false;
    let isOver = false; // the source has completed
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

/** Subscribes to the latest inner source only. */
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

/** `inspector`: callbacks for the events of each subscription, called before the subscriber. */
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
 * A promise that an observer settles: `observe({ resolve, reject, stop, guard })` returns its next() and complete(). `stop(reason)`
 * ends the subscription. `guard(body)` calls a worker's callback; if it throws, the promise rejects and the subscription ends.
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

/** Like promiseOf, for an observer that never ends the subscription itself. */
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

/** every(), some() and find(): the first value for which `predicate` returns `wanted` decides the result, `outcome(value)`. */
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

/** `initial`: { value }, or undefined if there is none. */
export function reduce(source, reducer, initial, signal) {
  let found = initial;
  let index = 0;
  return promiseOf(source, signal, ({ resolve, reject, guard }) => ({
    next: (value) => guard(() => {
      found = found === undefined ? { value } : { value: reducer(found.value, value, index) };
      index++;
    }),
    complete: () =>
      found === undefined ? reject(new TypeError("Observable.reduce: there was no value and no initial value.")) : resolve(found.value),
  }));
}
