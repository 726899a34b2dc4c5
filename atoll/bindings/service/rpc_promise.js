// The result of a method of another worker: a promise whose properties can be used before it resolves.
// https://developers.cloudflare.com/workers/runtime-apis/rpc/#promise-pipelining
//
// Values arrive whole, so properties are read here, after the value has arrived.

// Names that are not forwarded to the other worker: `then` would make every stub a promise; the others have a meaning here, as do
// the names that every object has: without its own toString() a stub could not even be part of a message.
export const OURS = new Set(["then", "catch", "finally", "toJSON", "dup", ...Object.getOwnPropertyNames(Object.prototype)]);
const OF_FUNCTIONS = new Set(["call", "apply", "bind"]);
const OF_PROMISES = new Set(["then", "catch", "finally"]);

function ownProperty(value, name) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    throw new TypeError("Can't pipeline on RPC that did not return an object.");
  }
  if (!Object.hasOwn(value, name)) throw new TypeError(`The RPC receiver does not implement the method "${name}".`);
  return value[name];
}

function callProperty(value, path, args) {
  const method = ownProperty(value, path.at(-1));
  if (typeof method !== "function") throw new TypeError(`"${path.join(".")}" is not a function.`);
  return method.apply(value, args);
}

/** A property of a promise: awaiting it calls `read()`, calling it calls `call(args)`. */
export function makeProperty(path, read, call) {
  let value = null;
  const promise = () => (value ??= read());
  return new Proxy(() => {}, {
    apply: (target, self, args) => call(args),
    get(target, name) {
      if (OF_PROMISES.has(name)) return (...handlers) => promise()[name](...handlers);
      if (typeof name === "symbol" || OURS.has(name) || OF_FUNCTIONS.has(name)) return Reflect.get(target, name);
      return propertyOf([...path, name], promise);
    },
    set: () => false,
  });
}

function propertyOf(path, parent) {
  return makeProperty(
    path,
    () => parent().then((value) => ownProperty(value, path.at(-1))),
    (args) => toRpcPromise(parent().then((value) => callProperty(value, path, args))),
  );
}

// Used only for properties that a promise does not have itself.
const beyond = new Proxy(Object.create(Promise.prototype), {
  get(target, name, promise) {
    if (typeof name === "symbol" || OURS.has(name) || name in target) return Reflect.get(target, name, promise);
    return propertyOf([name], () => Promise.prototype.then.call(promise, (value) => value));
  },
});

const prototype = Object.create(beyond, { [Symbol.toStringTag]: { value: "RpcPromise", configurable: true } });

/** The promise itself, with the properties of its future value. */
export function toRpcPromise(promise) {
  return Object.setPrototypeOf(promise, prototype);
}
