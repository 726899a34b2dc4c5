// https://nodejs.org/api/async_context.html
import { captureStores, deleteStore, getStore, hasStore, isolated, setStore, withStores } from "../internal/async_context.js";
import { requireFunction, requireString } from "./errors.js";

/** https://nodejs.org/api/async_context.html#class-asynclocalstorage */
export class AsyncLocalStorage {
  #key = {}; // the key of this storage in the context; a worker's subclass cannot reach it
  #default;
  #name;

  constructor({ defaultValue, name = "" } = {}) {
    this.#default = defaultValue;
    this.#name = `${name}`;
  }

  /** A function that calls `callback` with the current stores. */
  static bind(callback) {
    requireFunction(callback, "fn");
    const stores = captureStores();
    return function bound(...args) {
      return withStores(stores, () => callback.apply(this, args));
    };
  }

  /** A function that calls any function with the current stores. */
  static snapshot() {
    const stores = captureStores();
    return (callback, ...args) => withStores(stores, () => callback(...args));
  }

  get name() {
    return this.#name;
  }

  getStore() {
    return hasStore(this.#key) ? getStore(this.#key) : this.#default;
  }

  run(store, callback, ...args) {
    return isolated(() => {
      setStore(this.#key, store);
      return callback(...args);
    });
  }

  exit(callback, ...args) {
    return isolated(() => {
      if (this.#default === undefined) deleteStore(this.#key);
      else setStore(this.#key, undefined);
      return callback(...args);
    });
  }

  enterWith(store) {
    setStore(this.#key, store);
  }

  disable() {
    deleteStore(this.#key);
  }
}

let lastId = 1;

/** https://nodejs.org/api/async_context.html#class-asyncresource */
export class AsyncResource {
  #stores = captureStores();
  #id = ++lastId;
  #trigger;

  constructor(type, options = {}) {
    requireString(type, "type");
    this.#trigger = (typeof options === "number" ? options : options?.triggerAsyncId) ?? 1;
  }

  static bind(callback, type = undefined, thisArg = undefined) {
    return new AsyncResource(type ?? (callback.name || "bound-anonymous-fn")).bind(callback, thisArg);
  }

  bind(callback, thisArg = undefined) {
    requireFunction(callback, "fn");
    const resource = this;
    return Object.defineProperty(
      function bound(...args) {
        return resource.runInAsyncScope(callback, thisArg ?? this, ...args);
      },
      "length",
      { value: callback.length, configurable: true },
    );
  }

  runInAsyncScope(callback, thisArg = undefined, ...args) {
    return withStores(this.#stores, () => callback.apply(thisArg, args));
  }

  emitDestroy() {
    return this;
  }

  asyncId() {
    return this.#id;
  }

  triggerAsyncId() {
    return this.#trigger;
  }
}

/** Promise hooks are not supported: the callbacks are never called. */
export function createHook() {
  const hook = { enable: () => hook, disable: () => hook };
  return hook;
}

export function executionAsyncId() {
  return 0;
}

export function triggerAsyncId() {
  return 0;
}

export function executionAsyncResource() {
  return { __proto__: null };
}

export const asyncWrapProviders = Object.freeze({ __proto__: null });
