// Classes that older packages also call on an object of their own: `http.ServerResponse.call(this, request)`.

/** Makes `constructor` such a class: it inherits from `Parent` and has the members of `Members`, which extends `Parent`. */
export function defineLegacyClass(constructor, Parent, Members) {
  Object.setPrototypeOf(constructor.prototype, Parent.prototype);
  Object.setPrototypeOf(constructor, Parent);
  const members = Object.getOwnPropertyDescriptors(Members.prototype);
  delete members.constructor;
  Object.defineProperties(constructor.prototype, members);
}

/** A class that older code also calls without `new`: `crypto.Hash("sha1")`. */
export function callable(Class) {
  const both = new Proxy(Class, { apply: (target, self, args) => new target(...args) });
  Object.defineProperty(Class.prototype, "constructor", { value: both, writable: true, configurable: true });
  return both;
}
