// The iterators of interfaces that are lists of pairs: Headers, URLSearchParams, FormData.
// https://webidl.spec.whatwg.org/#js-iterable

const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

/**
 * Adds entries, keys, values, forEach and @@iterator to `Class`, which is called `name`. `pairsOf(object)` returns a flat list of
 * names and values, and throws if the object is not an instance. It is called before each step, so changes during the iteration
 * are seen.
 */
export function definePairs(Class, name, pairsOf) {

  class PairIterator {
    #object;
    #kind;
    #index = 0;

    constructor(object, kind) {
      this.#object = object;
      this.#kind = kind;
    }

    next() {
      const pairs = pairsOf(this.#object);
      const index = this.#index;
      if (index >= pairs.length) return { value: undefined, done: true };
      this.#index = index + 2;
      if (this.#kind === "key") return { value: pairs[index], done: false };
      if (this.#kind === "value") return { value: pairs[index + 1], done: false };
      return { value: [pairs[index], pairs[index + 1]], done: false };
    }
  }

  Object.setPrototypeOf(PairIterator.prototype, IteratorPrototype);
  delete PairIterator.prototype.constructor;
  Object.defineProperty(PairIterator.prototype, "next", { enumerable: true });
  Object.defineProperty(PairIterator.prototype, Symbol.toStringTag, { value: `${name} Iterator`, configurable: true });

  const methods = {
    entries() {
      pairsOf(this);
      return new PairIterator(this, "entry");
    },
    keys() {
      pairsOf(this);
      return new PairIterator(this, "key");
    },
    values() {
      pairsOf(this);
      return new PairIterator(this, "value");
    },
    forEach(callback, thisArgument = undefined) {
      pairsOf(this);
      if (typeof callback !== "function") throw new TypeError(`${name}.forEach: the callback is not a function.`);
      for (let index = 0, pairs = pairsOf(this); index < pairs.length; index += 2, pairs = pairsOf(this)) {
        callback.call(thisArgument, pairs[index + 1], pairs[index], this);
      }
    },
  };
  for (const [key, value] of Object.entries(methods)) {
    Object.defineProperty(Class.prototype, key, { value, writable: true, enumerable: true, configurable: true });
  }
  Object.defineProperty(Class.prototype, Symbol.iterator, {
    value: methods.entries,
    writable: true,
    configurable: true,
  });
}
