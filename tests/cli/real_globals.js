// The globals of an isolate beyond the language, with the members of every class. A fresh realm of plain ECMAScript is not
// available here, so the language's own names are listed.
const LANGUAGE = `
  AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array Boolean DataView Date
  DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity Int16Array
  Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp
  Set String SuppressedError Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray
  WeakMap WeakRef WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite isNaN
  parseFloat parseInt undefined unescape`.split(/\s+/);
const SYMBOLS = [Symbol.iterator, Symbol.asyncIterator]; // the others are not meant to be called
const OF_EVERY_CLASS = ["length", "name", "prototype"];

function namesOf(object, but) {
  return Reflect.ownKeys(object)
    .filter((key) => (typeof key === "symbol" ? SYMBOLS.includes(key) : !but.includes(key)))
    .map((key) => (typeof key === "symbol" ? `@@${key.description}` : key));
}

function described(value) {
  if (typeof value === "function" && typeof value.prototype === "object") {
    return { members: namesOf(value.prototype, ["constructor"]), statics: namesOf(value, OF_EVERY_CLASS) };
  }
  if (typeof value === "object" && value !== null && value.constructor === Object) return { members: [], statics: namesOf(value, []) };
  return "value";
}

export default {
  fetch() {
    const names = [];
    for (let scope = globalThis; scope !== Object.prototype; scope = Object.getPrototypeOf(scope)) {
      names.push(...Object.getOwnPropertyNames(scope).filter((name) => ![...LANGUAGE, "constructor"].includes(name)));
    }
    return Response.json(Object.fromEntries(names.map((name) => [name, described(globalThis[name])])));
  },
};
