// Turns a JavaScript class into an interface of the web platform: its shape, its brand and how a log shows it.
//
// Methods of a JavaScript class are not enumerable and those of a Web IDL interface are; interfaces carry their name as
// @@toStringTag; and structuredClone and console must tell a platform object from a plain one.
// https://webidl.spec.whatwg.org/#javascript-binding

const defineProperty = Object.defineProperty;
const getOwnPropertyDescriptor = Object.getOwnPropertyDescriptor;
const getOwnPropertyNames = Object.getOwnPropertyNames;
const getPrototypeOf = Object.getPrototypeOf;

// prototype -> { name, describe, clone }
const interfaces = new WeakMap();

// Keys that the language defines on every class and that stay as they are.
const CLASS_KEYS = ["length", "name", "prototype"];
const PROTOTYPE_KEYS = ["constructor"];

function makeEnumerable(target, languageKeys) {
  for (const key of getOwnPropertyNames(target)) {
    if (languageKeys.includes(key)) continue;
    if (getOwnPropertyDescriptor(target, key).configurable) defineProperty(target, key, { enumerable: true });
  }
}

/**
 * Gives `Class` the shape of an interface. `name` is required for a class that refers to itself in its own body, because the
 * bundler renames such classes.
 * `describe(object)`: the properties that a log shows; by default every attribute. `clone(object)`: its structured clone; by
 * default it cannot be cloned.
 */
export function defineInterface(Class, { name = Class.name, describe, clone } = {}) {
  makeEnumerable(Class, CLASS_KEYS);
  makeEnumerable(Class.prototype, PROTOTYPE_KEYS);
  defineProperty(Class, "name", { value: name, configurable: true });
  defineProperty(Class.prototype, Symbol.toStringTag, { value: name, configurable: true });
  interfaces.set(Class.prototype, { name, describe, clone });
}

/** The nearest interface that an object inherits from; undefined if there is none. */
export function interfaceOf(object) {
  for (let prototype = getPrototypeOf(object); prototype !== null; prototype = getPrototypeOf(prototype)) {
    const known = interfaces.get(prototype);
    if (known !== undefined) return known;
  }
  return undefined;
}

/** The constants of an interface are on the class and on its prototype. https://webidl.spec.whatwg.org/#define-the-constants */
export function defineConstants(Class, constants) {
  for (const [name, value] of Object.entries(constants)) {
    defineProperty(Class, name, { value, enumerable: true });
    defineProperty(Class.prototype, name, { value, enumerable: true });
  }
}
