// What ECMAScript 2026 has and this V8 does not: code that runs at Cloudflare uses it. V8 14 brings it, and each part is left out then.
import { lazy } from "./internal/lazy.js";

function requireObject(value, what) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) throw new TypeError(`Iterator.concat: ${what} is not an object.`);
  return value;
}

// https://tc39.es/proposal-upsert/
function upserts({ get, has, set }) {
  return {
    getOrInsert(key, value) {
      if (has.call(this, key)) return get.call(this, key);
      set.call(this, key, value);
      return value;
    },
    getOrInsertComputed(key, callback) {
      const isThere = has.call(this, key); // which checks `this` first
      if (typeof callback !== "function") throw new TypeError("getOrInsertComputed: the callback is not a function.");
      if (isThere) return get.call(this, key);
      const canonical = key === 0 ? 0 : key;
      const value = callback(canonical);
      set.call(this, key, value);
      return value;
    },
  };
}

/** The values of all iterables, one after the other; each is asked for its iterator when its turn comes. */
function* chain(iterables) {
  for (const { item, method } of iterables) {
    const iterator = requireObject(method.call(item), "what an iterable returned");
    const { next } = iterator;
    for (;;) {
      const result = requireObject(next.call(iterator), "the result of an iterator");
      if (result.done) break;
      let isLeft = true;
      try {
        yield result.value;
        isLeft = false;
      } finally {
        if (isLeft) iterator.return?.();
      }
    }
  }
}

// https://tc39.es/proposal-iterator-sequencing/
const statics = {
  concat(...items) {
    const iterables = items.map((item) => {
      const method = requireObject(item, "an argument")[Symbol.iterator];
      if (typeof method !== "function") throw new TypeError("Iterator.concat: an argument is not iterable.");
      return { item, method };
    });
    const all = chain(iterables);
    return Iterator.from({ next: () => all.next(), return: () => all.return() });
  },
};

// https://tc39.es/proposal-math-sum/
const sums = {
  sumPrecise(items) {
    return lazy("precise_sum.js").sumPrecise(items);
  },
};

/** `define(object, name, method)` adds a method as the language has its own. */
export function addNewerLanguage(define) {
  for (const Class of [Map, WeakMap]) {
    for (const [name, method] of Object.entries(upserts(Class.prototype))) if (!(name in Class.prototype)) define(Class.prototype, name, method);
  }
  if (!("concat" in Iterator)) define(Iterator, "concat", statics.concat);
  if (!("sumPrecise" in Math)) define(Math, "sumPrecise", sums.sumPrecise);
}
