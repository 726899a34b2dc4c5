// What makes a JavaScript class an interface of the web platform: shape, brand and how it looks in a log.
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

// Keys that every class and every prototype has by the language and that stay as they are.
const CLASS_KEYS = ["length", "name", "prototype"];
const PROTOTYPE_KEYS = ["constructor"];

function makeEnumerable(target, languageKeys) {
  for (const key of getOwnPropertyNames(target)) {
    if (languageKeys.includes(key)) continue;
    if (getOwnPropertyDescriptor(target, key).configurable) defineProperty(target, key, { enumerable: true });
  }
}

/**
 * Give `Class` the shape of an interface. `name` must be said by a class that names itself in its own body: the bundler
 * renames those.
 * `describe(object)`: the properties a log shows, by default every attribute. `clone(object)`: its structured clone, by
 * default it cannot be cloned.
 */
export function defineInterface(Class, { name = Class.name, describe, clone } = {}) {
  makeEnumerable(Class, CLASS_KEYS);
  makeEnumerable(Class.prototype, PROTOTYPE_KEYS);
  defineProperty(Class, "name", { value: name, configurable: true });
  defineProperty(Class.prototype, Symbol.toStringTag, { value: name, configurable: true });
  interfaces.set(Class.prototype, { name, describe, clone });
}

/** The interface an object belongs to, the nearest one if it is of a class that extends it; undefined for others. */
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
