// The objects that a worker holds of RPC: stubs, the promises of calls, and their properties. All three are proxies, because
// every name may be a method of the other side.
// https://developers.cloudflare.com/workers/runtime-apis/rpc/
//
// Each proxy has a handler, its "handle". A handle has ask(path, args): it starts a call, or reads a property if `args` is null,
// and returns an answer: { promise, ask(path, args), dispose() }. Calls on the answer are pipelined.
import { defineReference } from "../dom/clone.js";
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { promiseDisposed, stubDisposed, tooDeep, wrongContext } from "./errors.js";
import { LocalCap } from "./local.js";

export const MOST_LEVELS = 64; // names in a path, and calls pipelined on each other

const HANDLE = Symbol("handle"); // of the function behind a proxy; nobody sees that function
const OF_PROMISES = new Set(["then", "catch", "finally"]);
// `then` would make every stub a promise, and without its own toString() a stub could not be part of a message.
const LOCAL = new Set([...OF_PROMISES, "toJSON", ...Object.getOwnPropertyNames(Object.prototype)]);
const OF_FUNCTIONS = new Set(["call", "apply", "bind"]);

/** The handle of a stub, promise or property; undefined for any other value. */
export function handleOf(value) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !native.isProxy(value)) return undefined;
  const target = native.proxyTarget(value);
  return typeof target === "function" && Object.hasOwn(target, HANDLE) ? target[HANDLE] : undefined;
}

/** https://developers.cloudflare.com/workers/runtime-apis/rpc/#class-instances: instances stay here and are passed by reference. */
export class RpcTarget {}

/** A stub of a local object, or of one in another worker. */
export class RpcStub {
  constructor(target) {
    return makeStub(new LocalCap(requireWrappable(target)));
  }
}

export class RpcPromise {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

export class RpcProperty {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

/** A stub of an entry point. */
export class ServiceStub {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

for (const Class of [RpcTarget, RpcStub, RpcPromise, RpcProperty, ServiceStub]) {
  Object.defineProperty(Class.prototype, Symbol.toStringTag, { value: Class.name, configurable: true });
}

defineReference((value) => value instanceof RpcTarget || handleOf(value) !== undefined);

function requireWrappable(target) {
  const isPlain = typeof target === "object" && target !== null && Object.getPrototypeOf(target) === Object.prototype;
  if (isPlain || typeof target === "function" || target instanceof RpcTarget) return target;
  throw new TypeError("RpcStubs can only wrap plain objects, functions, and RpcTarget derivatives.");
}

/** The traps that all three kinds share. A subclass says what is local, and how a call starts. */
class Handle {
  constructor(Class) {
    this.Class = Class;
  }

  getPrototypeOf() {
    return this.Class.prototype;
  }

  apply(target, self, args) {
    return startCall(this, [], args);
  }

  get(target, name) {
    if (typeof name === "symbol") return name === Symbol.dispose ? () => this.dispose() : this.Class.prototype[name];
    if (LOCAL.has(name)) return OF_PROMISES.has(name) ? this.promiseMethod(name) : this.Class.prototype[name];
    return this.own(name) ?? makeProperty(this, [name]);
  }

  own() {
    return undefined;
  }

  promiseMethod() {
    return undefined;
  }

  has(target, name) {
    return name in this.Class.prototype;
  }

  set() {
    return false;
  }

  defineProperty() {
    return false;
  }

  deleteProperty() {
    return false;
  }

  ownKeys() {
    return [];
  }

  getOwnPropertyDescriptor() {
    return undefined;
  }
}

/** The proxy of a handle. */
export function proxyOf(handle) {
  const target = () => {};
  target[HANDLE] = handle;
  return new Proxy(target, handle);
}

function startCall(handle, path, args) {
  let answer;
  try {
    answer = handle.ask(path, args);
  } catch (error) {
    answer = failedAnswer(error);
  }
  return makePromise(answer);
}

function failedAnswer(error) {
  const promise = Promise.reject(error);
  promise.catch(() => {});
  const answer = { promise, ask: () => answer, dispose() {} };
  return answer;
}

function checkContext(owner) {
  if (callOf(native.getAsyncContext()) !== owner) throw wrongContext();
}

// --- stubs ---

export class StubHandle extends Handle {
  constructor(cap) {
    super(RpcStub);
    this.cap = cap; // { owner, retain(), release(), ask(path, args) }
    this.isDisposed = false;
    this.onDispose = null;
    cap.retain();
  }

  /** The capability, for a use of the stub. */
  live() {
    if (this.isDisposed) throw stubDisposed();
    checkContext(this.cap.owner);
    return this.cap;
  }

  ask(path, args) {
    return this.live().ask(path, args);
  }

  own(name) {
    return name === "dup" ? () => makeStub(this.live()) : undefined;
  }

  dispose() {
    if (this.isDisposed) return;
    this.isDisposed = true;
    this.cap.release();
    this.onDispose?.();
  }
}

export function makeStub(cap) {
  return proxyOf(new StubHandle(cap));
}

/** An entry point: of a service binding, or an own one. It is not tied to a request: each call begins a new one. */
export class EntrypointHandle extends Handle {
  constructor() {
    super(ServiceStub);
  }

  own(name) {
    return name === "fetch" ? (input, init) => this.fetch(input, init) : undefined;
  }

  dispose() {}
}

// --- promises ---

class PromiseHandle extends Handle {
  #isDisposed = false;

  constructor(answer) {
    super(RpcPromise);
    this.answer = answer;
  }

  ask(path, args) {
    if (this.#isDisposed) throw promiseDisposed();
    if (this.answer.owner !== undefined) checkContext(this.answer.owner);
    return this.answer.ask(path, args);
  }

  promiseMethod(name) {
    return (...handlers) => {
      if (this.#isDisposed) return Promise.reject(promiseDisposed())[name](...handlers);
      this.answer.isTaken = true;
      return this.answer.promise[name](...handlers);
    };
  }

  dispose() {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.answer.dispose();
  }
}

export function makePromise(answer) {
  return proxyOf(new PromiseHandle(answer));
}

// --- properties ---

class PropertyHandle extends Handle {
  #fetched = null;

  constructor(parent, path) {
    super(RpcProperty);
    this.parent = parent;
    this.path = path;
  }

  ask(path, args) {
    return this.parent.ask([...this.path, ...path], args);
  }

  own(name) {
    return OF_FUNCTIONS.has(name) ? Function.prototype[name] : undefined;
  }

  get(target, name) {
    if (typeof name === "symbol" || LOCAL.has(name) || OF_FUNCTIONS.has(name)) return super.get(target, name);
    return makeProperty(this.parent, [...this.path, name]);
  }

  promiseMethod(name) {
    return (...handlers) => {
      this.#fetched ??= startFetch(this.parent, this.path);
      return this.#fetched[name](...handlers);
    };
  }

  dispose() {}
}

function startFetch(parent, path) {
  try {
    const answer = parent.ask(path, null);
    answer.isTaken = true;
    return answer.promise;
  } catch (error) {
    return Promise.reject(error);
  }
}

export function makeProperty(parent, path) {
  if (path.length > MOST_LEVELS) throw tooDeep(MOST_LEVELS);
  return proxyOf(new PropertyHandle(parent, path));
}
