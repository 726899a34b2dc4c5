// Web IDL conversions of values from a worker. https://webidl.spec.whatwg.org/#js-type-mapping

import { native } from "./native.js";

const isView = ArrayBuffer.isView;
const bufferByteLength = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength").get;

/**
 * https://webidl.spec.whatwg.org/#dfn-overload-resolution-algorithm: too few arguments. `where` is "Interface.method", "Interface
 * constructor" or the name of a global function, `types` are those of the arguments. The texts are Cloudflare's, which code compares.
 */
export function requireArguments(given, needed, where, ...types) {
  if (given < needed) throw wrongArgument(where, given, types[given] ?? "string");
}

/** The error for an argument of the wrong type; `index` counts from 0. */
export function wrongArgument(where, index, type) {
  if (where.endsWith(" constructor")) {
    const name = where.slice(0, -" constructor".length);
    return new TypeError(`Failed to construct '${name}': constructor parameter ${index + 1} is not of type '${type}'.`);
  }
  const dot = where.indexOf(".");
  const [owner, name] = dot === -1 ? ["ServiceWorkerGlobalScope", where] : [where.slice(0, dot), where.slice(dot + 1)];
  return new TypeError(`Failed to execute '${name}' on '${owner}': parameter ${index + 1} is not of type '${type}'.`);
}

/** The error for a member of a dictionary. */
export function wrongMember(member, dictionary, type) {
  return new TypeError(`Incorrect type for the '${member}' field on '${dictionary}': the provided value is not of type '${type}'.`);
}

export function illegalConstructor() {
  return new TypeError("Illegal constructor");
}

/** https://webidl.spec.whatwg.org/#js-DOMString */
export function toDOMString(value) {
  return typeof value === "string" ? value : `${value}`;
}

// V8 joins strings lazily: half a gigabyte is created at once, but the first read takes a third of a second and cannot be
// interrupted. So strings that are too long for any use are rejected before they are read.
const LONGEST_TEXT = 2 ** 27;
const LONGEST_HEADER = 2 ** 20;

/** https://webidl.spec.whatwg.org/#js-USVString */
export function toUSVString(value) {
  const string = typeof value === "string" ? value : `${value}`;
  if (string.length > LONGEST_TEXT) throw new RangeError(`A string of ${string.length} characters is too long.`);
  return string.toWellFormed();
}

/** For names and values of headers and other parts of a message head. The limit is far above what any server accepts. */
export function requireHeaderLength(string) {
  if (string.length > LONGEST_HEADER) throw new RangeError(`A string of ${string.length} characters is too long for HTTP.`);
  return string;
}

const ABOVE_LATIN1 = /[\u0100-\uffff]/;

/** https://webidl.spec.whatwg.org/#js-ByteString */
export function toByteString(value, where) {
  const string = requireHeaderLength(typeof value === "string" ? value : `${value}`);
  if (ABOVE_LATIN1.test(string)) {
    throw new TypeError(`${where}: the string has a character above U+00FF, which HTTP cannot carry.`);
  }
  return string;
}

/** https://webidl.spec.whatwg.org/#abstract-opdef-converttoint for unsigned types of up to 32 bits, without attributes. */
export function toUnsigned(value, bits) {
  const number = Number(value);
  if (!Number.isFinite(number)) return 0;
  const modulus = 2 ** bits;
  const rest = Math.trunc(number) % modulus;
  return rest < 0 ? rest + modulus : rest + 0;
}

/** https://webidl.spec.whatwg.org/#abstract-opdef-converttoint with [EnforceRange], up to 2^53 - 1. */
export function toEnforcedRange(value, where) {
  const number = Number(value);
  if (Number.isFinite(number)) {
    const integer = Math.trunc(number);
    if (integer >= 0 && integer <= Number.MAX_SAFE_INTEGER) return integer + 0;
  }
  throw new TypeError(`${where}: the value is out of range.`);
}

/** https://webidl.spec.whatwg.org/#js-long-long without attributes. */
export function toLongLong(value) {
  const number = Number(value);
  if (!Number.isFinite(number)) return 0;
  const integer = Math.trunc(number);
  return Number.isSafeInteger(integer) ? integer + 0 : Number(BigInt.asIntN(64, BigInt(integer)));
}

/** https://webidl.spec.whatwg.org/#js-long-long with [Clamp]. */
export function toClampedLong(value) {
  const number = Number(value);
  if (Number.isNaN(number)) return 0;
  const clamped = Math.min(Math.max(number, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  // Round to the nearest integer, and halves to the even one.
  const floor = Math.floor(clamped);
  const above = clamped - floor;
  return above < 0.5 || (above === 0.5 && floor % 2 === 0) ? floor + 0 : floor + 1;
}

// No prototype, so that properties of Object.prototype do not become options.
export const NO_OPTIONS = Object.freeze({ __proto__: null });

/** https://webidl.spec.whatwg.org/#js-dictionary: undefined and null are an empty dictionary. */
export function toDictionary(value, where) {
  if (value === undefined || value === null) return NO_OPTIONS;
  if (typeof value !== "object" && typeof value !== "function") {
    throw new TypeError(`${where}: the options must be an object.`);
  }
  return value;
}

/** https://webidl.spec.whatwg.org/#js-enumeration */
export function toEnum(value, allowed, where) {
  const string = toDOMString(value);
  if (!allowed.includes(string)) {
    throw new TypeError(`${where}: "${string}" is not one of ${allowed.map((name) => `"${name}"`).join(", ")}.`);
  }
  return string;
}

/** https://webidl.spec.whatwg.org/#create-sequence-from-iterable; `convert` is applied to each item before the next is read. */
export function toSequence(value, where, convert = (item) => item) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) {
    throw new TypeError(`${where}: the value is not a sequence.`);
  }
  const method = value[Symbol.iterator];
  if (typeof method !== "function") throw new TypeError(`${where}: the value is not iterable.`);
  const iterator = method.call(value);
  const { next } = iterator;
  const items = [];
  for (;;) {
    const step = next.call(iterator);
    if (step === null || typeof step !== "object") throw new TypeError(`${where}: the iterator did not return an object.`);
    if (step.done) return items;
    items.push(convert(step.value));
  }
}

/**
 * https://webidl.spec.whatwg.org/#js-record, steps 3 and 4: calls `visit(key, value)` for each property of a record, and before the
 * value is read `check(key)`, which throws if the key cannot be converted.
 */
export function forEachProperty(object, check, visit) {
  if (!native.isProxy(object) && Object.getOwnPropertySymbols(object).length === 0) {
    for (const key of Object.keys(object)) visit(key, object[key]);
    return;
  }
  // A proxy or a symbol key could tell the difference: read key by key as the standard says. The conversion rejects symbols.
  for (const key of Reflect.ownKeys(object)) {
    if (!Reflect.getOwnPropertyDescriptor(object, key)?.enumerable) continue;
    check(key);
    visit(key, object[key]);
  }
}

/** True for an ArrayBuffer of any realm; not for a SharedArrayBuffer. */
export function isArrayBuffer(value) {
  if (value === null || typeof value !== "object") return false;
  try {
    bufferByteLength.call(value);
    return true;
  } catch {
    return false;
  }
}

export function isBufferSource(value) {
  return isView(value) || isArrayBuffer(value);
}

/** The bytes of a BufferSource or a SharedArrayBuffer, without a copy; empty if it is detached. */
export function bytesOf(source) {
  if (source instanceof Uint8Array) return source;
  if ((isView(source) ? source.buffer : source).detached) return new Uint8Array(0);
  if (isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  return new Uint8Array(source);
}

/** https://webidl.spec.whatwg.org/#dfn-get-buffer-source-copy */
export function copyBytes(source) {
  return bytesOf(source).slice();
}
