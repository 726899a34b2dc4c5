// Deep equality, as in node:assert and util.isDeepStrictEqual.
// https://nodejs.org/api/assert.html#assertdeepstrictequalactual-expected-message
import { kindOf, unbox } from "../internal/inspect_values.js";

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

// Without `strict`, 1 equals "1" and null equals undefined. NaN always equals itself.
function isSamePrimitive(a, b, strict) {
  if (strict) return Object.is(a, b);
  // eslint-disable-next-line eqeqeq
  return a == b || (Number.isNaN(a) && Number.isNaN(b));
}

function ownKeys(object) {
  const symbols = Object.getOwnPropertySymbols(object);
  const enumerable = symbols.filter((symbol) => Object.getOwnPropertyDescriptor(object, symbol).enumerable);
  return [...Object.keys(object), ...enumerable];
}

function sameProperties(a, b, run) {
  const keys = ownKeys(a);
  if (keys.length !== ownKeys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key], run));
}

// Compares without order: each item of one must match a different item of the other.
function sameItems(a, b, equals) {
  const rest = [...b];
  return [...a].every((item) => {
    const index = rest.findIndex((other) => equals(item, other));
    if (index !== -1) rest.splice(index, 1);
    return index !== -1;
  });
}

function sameMaps(a, b, run) {
  if (a.size !== b.size) return false;
  const isSimple = [...a.keys()].every((key) => !isObject(key) && run.strict);
  if (isSimple) return [...a].every(([key, value]) => b.has(key) && same(value, b.get(key), run));
  return sameItems(a, b, ([keyA, valueA], [keyB, valueB]) => same(keyA, keyB, run) && same(valueA, valueB, run));
}

function sameSets(a, b, run) {
  if (a.size !== b.size) return false;
  if (run.strict && [...a].every((item) => !isObject(item))) return [...a].every((item) => b.has(item));
  return sameItems(a, b, (itemA, itemB) => same(itemA, itemB, run));
}

function sameBytes(a, b) {
  const [x, y] = [a, b].map((view) => new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength));
  return x.length === y.length && x.every((byte, i) => byte === y[i]);
}

// Compares the content of two objects of one kind, except their properties.
function sameContent(kind, a, b, run) {
  switch (kind) {
    case "Map":
      return sameMaps(a, b, run);
    case "Set":
      return sameSets(a, b, run);
    case "Date":
      return Object.is(a.getTime(), b.getTime());
    case "RegExp":
      return a.source === b.source && a.flags === b.flags && a.lastIndex === b.lastIndex;
    case "Error":
      return a.message === b.message && a.name === b.name && same(a.cause, b.cause, run) && same(a.errors, b.errors, run);
    case "Boxed":
      return Object.is(unbox(a), unbox(b));
    case "ArrayBuffer":
    case "DataView":
      return sameBytes(a, b);
    case "Array":
      return a.length === b.length;
    case "Promise":
    case "WeakMap":
    case "WeakSet":
    case "Function":
      return false;
    default:
      return !ArrayBuffer.isView(a) || sameTyped(a, b, run);
  }
}

function sameTyped(a, b, run) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (run.strict ? !Object.is(a[i], b[i]) : a[i] !== b[i] && !Number.isNaN(a[i])) return false;
  return true;
}

const tagOf = (object) => Object.prototype.toString.call(object);

function same(a, b, run) {
  if (!isObject(a) || !isObject(b)) return !isObject(a) && !isObject(b) ? isSamePrimitive(a, b, run.strict) : a === b;
  if (a === b) return true;
  if (run.strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const kind = kindOf(a);
  if (run.strict && tagOf(a) !== tagOf(b)) return false;
  if (kind !== kindOf(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  // A pair that is already being compared counts as equal, so that circular structures end.
  if (run.path.some(([x, y]) => x === a && y === b)) return true;
  run.path.push([a, b]);
  try {
    if (!sameContent(kind, a, b, run)) return false;
    return ArrayBuffer.isView(a) || sameProperties(a, b, run);
  } finally {
    run.path.pop();
  }
}

export function isDeepEqual(a, b, strict) {
  return same(a, b, { strict, path: [] });
}
