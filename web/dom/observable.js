// https://wicg.github.io/observable/: a draft, implemented by Chrome.
import { addAbortAlgorithm, createSignal, isAbortSignal, signalAbort } from "./abort.js";
import * as operators from "./observable_operators.js";
import { algorithmOf } from "./observable_sources.js";
import { reportException } from "./report.js";
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor, requireArguments, toDictionary, toLongLong } from "../internal/webidl.js";

const INTERNAL = Symbol("made by the platform");

/** A function of the worker, called as a Web IDL callback. */
function toCallback(value, where) {
  if (typeof value !== "function") throw new TypeError(`${where}: the argument is not a function.`);
  return (...args) => Reflect.apply(value, undefined, args);
}

/** The callbacks of a dictionary, read in the order of Web IDL. */
function toCallbacks(value, names, where) {
  if (typeof value === "function") return { next: toCallback(value, where) };
  const given = toDictionary(value, where);
  const callbacks = {};
  for (const name of names) {
    const member = given[name];
    if (member !== undefined) callbacks[name] = toCallback(member, `${where}: ${name}`);
  }
  return callbacks;
}

function toSignal(options, where) {
  const { signal } = toDictionary(options, where);
  if (signal !== undefined && !isAbortSignal(signal)) throw new TypeError(`${where}: signal is not an AbortSignal.`);
  return signal;
}

/** https://webidl.spec.whatwg.org/#js-unsigned-long-long */
function toAmount(value) {
  const number = toLongLong(value);
  return number < 0 ? number + 2 ** 64 : number;
}

function guarded(callback) {
  return (...args) => {
    try {
      callback(...args);
    } catch (error) {
      reportException(error);
    }
  };
}

/** https://webidl.spec.whatwg.org/#dfn-create-operation-function: an operation that returns a promise rejects instead of throwing. */
function promised(body) {
  try {
    return body();
  } catch (error) {
    return Promise.reject(error);
  }
}

// Set by the classes below.
let createSubscriber;
let observe;
let createObservable;
let sourceOf;
let isObservable;

/** https://wicg.github.io/observable/#subscriber-api */
export class Subscriber {
  #observers = []; // { next, error, complete }
  #teardowns = [];
  #signal = createSignal();
  #active = true;

  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  next(value) {
    const observers = this.#observers;
    requireArguments(arguments.length, 1, "Subscriber.next");
    if (this.#active) for (const { next } of [...observers]) next(value);
  }

  error(error) {
    const observers = this.#observers;
    requireArguments(arguments.length, 1, "Subscriber.error");
    if (!this.#active) {
      reportException(error);
      return;
    }
    this.#close(error);
    for (const observer of [...observers]) observer.error(error);
  }

  complete() {
    if (!this.#active) return;
    this.#close();
    for (const { complete } of [...this.#observers]) complete();
  }

  addTeardown(teardown) {
    const teardowns = this.#teardowns;
    requireArguments(arguments.length, 1, "Subscriber.addTeardown");
    const run = guarded(toCallback(teardown, "Subscriber.addTeardown"));
    if (this.#active) teardowns.push(run);
    else run();
  }

  get active() {
    return this.#active;
  }

  get signal() {
    return this.#signal;
  }

  /** https://wicg.github.io/observable/#close-a-subscription */
  #close(reason = undefined) {
    if (!this.#active) return;
    this.#active = false;
    signalAbort(this.#signal, reason);
    for (const teardown of this.#teardowns.reverse()) teardown();
    this.#teardowns = [];
  }

  static {
    createSubscriber = () => new this(INTERNAL);
    /** Adds an observer, which is removed when `signal` aborts. When the last observer is removed, the subscription closes. */
    observe = (subscriber, observer, signal) => {
      const observers = subscriber.#observers;
      const leave = () => {
        if (!subscriber.#active) return;
        observers.splice(observers.indexOf(observer), 1);
        if (observers.length === 0) subscriber.#close(signal.reason);
      };
      observers.push(observer);
      if (signal === undefined) return;
      if (signal.aborted) leave();
      else addAbortAlgorithm(signal, leave);
    };
  }
}

defineInterface(Subscriber, { name: "Subscriber" });

/** https://wicg.github.io/observable/#observable-api */
export class Observable {
  #algorithm; // a function of a Subscriber
  #subscriber = null; // the active Subscriber, which has all observers

  constructor(callback, token = undefined) {
    requireArguments(arguments.length, 1, "Observable constructor");
    this.#algorithm = token === INTERNAL ? callback : toCallback(callback, "Observable constructor");
  }

  /** https://wicg.github.io/observable/#dom-observable-from */
  static from(value) {
    requireArguments(arguments.length, 1, "Observable.from");
    return toObservable(value);
  }

  subscribe(observer = undefined, options = undefined) {
    this.#algorithm; // a brand check before anything else
    const { next, error, complete } = toCallbacks(observer, ["complete", "error", "next"], "Observable.subscribe");
    const signal = toSignal(options, "Observable.subscribe");
    const nothing = () => {};
    this.#subscribe(
      {
        next: next === undefined ? nothing : guarded(next),
        error: error === undefined ? reportException : guarded(error),
        complete: complete === undefined ? nothing : guarded(complete),
      },
      signal,
    );
  }

  /** https://wicg.github.io/observable/#observable-subscribe-to-an-observable */
  #subscribe(observer, signal = undefined) {
    if (this.#subscriber?.active) {
      observe(this.#subscriber, observer, signal);
      return;
    }
    const subscriber = (this.#subscriber = createSubscriber());
    observe(subscriber, observer, signal);
    try {
      this.#algorithm(subscriber);
    } catch (error) {
      subscriber.error(error);
    }
  }

  takeUntil(value) {
    const source = this.#source("takeUntil", arguments.length, 1);
    return createObservable(operators.takeUntil(source, convert(value)));
  }

  map(mapper) {
    const source = this.#source("map", arguments.length, 1);
    return createObservable(operators.map(source, toCallback(mapper, "Observable.map")));
  }

  filter(predicate) {
    const source = this.#source("filter", arguments.length, 1);
    return createObservable(operators.filter(source, toCallback(predicate, "Observable.filter")));
  }

  take(amount) {
    const source = this.#source("take", arguments.length, 1);
    return createObservable(operators.take(source, toAmount(amount)));
  }

  drop(amount) {
    const source = this.#source("drop", arguments.length, 1);
    return createObservable(operators.drop(source, toAmount(amount)));
  }

  flatMap(mapper) {
    const source = this.#source("flatMap", arguments.length, 1);
    return createObservable(operators.flatMap(source, toCallback(mapper, "Observable.flatMap"), convert));
  }

  switchMap(mapper) {
    const source = this.#source("switchMap", arguments.length, 1);
    return createObservable(operators.switchMap(source, toCallback(mapper, "Observable.switchMap"), convert));
  }

  inspect(inspector = undefined) {
    const source = this.#source("inspect", 0, 0);
    const names = ["abort", "complete", "error", "next", "subscribe"];
    return createObservable(operators.inspect(source, toCallbacks(inspector, names, "Observable.inspect")));
  }

  catch(callback) {
    const source = this.#source("catch", arguments.length, 1);
    return createObservable(operators.catchError(source, toCallback(callback, "Observable.catch"), convert));
  }

  finally(callback) {
    const source = this.#source("finally", arguments.length, 1);
    return createObservable(operators.finallyDo(source, toCallback(callback, "Observable.finally")));
  }

  toArray(options = undefined) {
    return promised(() => {
      return operators.toArray(this.#source("toArray", 0, 0), toSignal(options, "Observable.toArray"));
    });
  }

  forEach(callback, options = undefined) {
    return promised(() => {
      const source = this.#source("forEach", arguments.length, 1);
      return operators.forEach(source, toCallback(callback, "Observable.forEach"), toSignal(options, "Observable.forEach"));
    });
  }

  every(predicate, options = undefined) {
    return promised(() => {
      const source = this.#source("every", arguments.length, 1);
      const steps = { wanted: false, outcome: () => false, otherwise: true };
      return operators.search(source, toCallback(predicate, "Observable.every"), toSignal(options, "Observable.every"), steps);
    });
  }

  first(options = undefined) {
    return promised(() => {
      return operators.first(this.#source("first", 0, 0), toSignal(options, "Observable.first"));
    });
  }

  last(options = undefined) {
    return promised(() => {
      return operators.last(this.#source("last", 0, 0), toSignal(options, "Observable.last"));
    });
  }

  find(predicate, options = undefined) {
    return promised(() => {
      const source = this.#source("find", arguments.length, 1);
      const steps = { wanted: true, outcome: (value) => value, otherwise: undefined };
      return operators.search(source, toCallback(predicate, "Observable.find"), toSignal(options, "Observable.find"), steps);
    });
  }

  some(predicate, options = undefined) {
    return promised(() => {
      const source = this.#source("some", arguments.length, 1);
      const steps = { wanted: true, outcome: () => true, otherwise: false };
      return operators.search(source, toCallback(predicate, "Observable.some"), toSignal(options, "Observable.some"), steps);
    });
  }

  reduce(reducer, initialValue = undefined, options = undefined) {
    return promised(() => {
      const source = this.#source("reduce", arguments.length, 1);
      const initial = initialValue === undefined ? undefined : { value: initialValue };
      return operators.reduce(source, toCallback(reducer, "Observable.reduce"), initial, toSignal(options, "Observable.reduce"));
    });
  }

  #source(method, given, needed) {
    requireArguments(given, needed, `Observable.${method}`);
    return (observer, signal) => this.#subscribe(observer, signal);
  }

  static {
    createObservable = (algorithm) => new this(algorithm, INTERNAL);
    sourceOf = (observable) => (observer, signal) => observable.#subscribe(observer, signal);
    isObservable = (value) => #algorithm in value;
  }
}

defineInterface(Observable, { name: "Observable" });
Object.defineProperty(Observable, "length", { value: 1, configurable: true });

/** https://wicg.github.io/observable/#observable-convert-to-an-observable */
function toObservable(value) {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  if (!isObject) throw new TypeError("Observable.from: the value is not an object.");
  if (isObservable(value)) return value;
  const algorithm = algorithmOf(value);
  if (algorithm === undefined) throw new TypeError("Observable.from: the value is not an Observable, iterable or Promise.");
  return createObservable(algorithm);
}

/** The source of an observable value. */
function convert(value) {
  return sourceOf(toObservable(value));
}

/** https://wicg.github.io/observable/#dom-eventtarget-when: `listen(callback, signal)` adds the listener. */
export function observeEvents(listen) {
  return createObservable((subscriber) => {
    if (!subscriber.signal.aborted) listen((event) => subscriber.next(event), subscriber.signal);
  });
}
