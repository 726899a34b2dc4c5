// https://nodejs.org/api/test.html#class-mocktracker: only the mocks of node:test. A worker has no test runner.
import { requireFunction } from "./errors.js";

class MockFunctionContext {
  #calls = [];
  #implementation;
  #original;
  #once = new Map(); // number of a call -> its implementation
  #restore;

  constructor(original, implementation, restore) {
    this.#original = original;
    this.#implementation = implementation;
    this.#restore = restore;
  }

  get calls() {
    return [...this.#calls];
  }

  callCount() {
    return this.#calls.length;
  }

  mockImplementation(implementation) {
    requireFunction(implementation, "implementation");
    this.#implementation = implementation;
  }

  mockImplementationOnce(implementation, onCall = this.#calls.length) {
    requireFunction(implementation, "implementation");
    this.#once.set(onCall, implementation);
  }

  resetCalls() {
    this.#calls = [];
  }

  restore() {
    this.#implementation = this.#original;
    this.#restore();
  }

  static run(context, self, args, target) {
    const number = context.#calls.length;
    const implementation = context.#once.get(number) ?? context.#implementation;
    context.#once.delete(number);
    const call = { arguments: args, error: undefined, result: undefined, stack: new Error(), target, this: self };
    try {
      call.result = target === undefined ? Reflect.apply(implementation, self, args) : Reflect.construct(implementation, args, target);
      if (target !== undefined) call.this = call.result;
      return call.result;
    } catch (error) {
      call.error = error;
      throw error;
    } finally {
      context.#calls.push(call);
    }
  }
}

const { run } = MockFunctionContext;
delete MockFunctionContext.run;

export class MockTracker {
  #contexts = [];

  #make(original, implementation, restore = () => {}) {
    const context = new MockFunctionContext(original, implementation, restore);
    this.#contexts.push(context);
    return new Proxy(original, {
      apply: (target, self, args) => run(context, self, args, undefined),
      construct: (target, args, newTarget) => run(context, undefined, args, newTarget),
      get: (target, key, receiver) => (key === "mock" ? context : Reflect.get(target, key, receiver)),
    });
  }

  fn(original = () => {}, implementation = original) {
    if (typeof original !== "function") return this.#make(() => {}, () => {});
    return this.#make(original, typeof implementation === "function" ? implementation : original);
  }

  method(object, name, implementation = undefined) {
    let holder = object;
    while (holder !== null && !Object.hasOwn(holder, name)) holder = Object.getPrototypeOf(holder);
    const descriptor = holder === null ? undefined : Object.getOwnPropertyDescriptor(holder, name);
    requireFunction(descriptor?.value, "methodName");
    const isOwn = holder === object;
    const value = this.#make(descriptor.value, typeof implementation === "function" ? implementation : descriptor.value, () => {
      if (isOwn) Object.defineProperty(object, name, descriptor);
      else delete object[name];
    });
    Object.defineProperty(object, name, { ...descriptor, value, configurable: true });
    return value;
  }

  reset() {
    this.restoreAll();
    this.#contexts = [];
  }

  restoreAll() {
    for (const context of this.#contexts) context.restore();
  }
}

export const mock = new MockTracker();
export default { mock, MockTracker };
