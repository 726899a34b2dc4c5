// Web IDL conversions of Web Cryptography, in addition to internal/webidl.js.
import { isArrayBuffer, toDOMString } from "../internal/webidl.js";

const isView = ArrayBuffer.isView;
const getterOf = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
const isResizable = getterOf(ArrayBuffer.prototype, "resizable");
const isDetached = getterOf(ArrayBuffer.prototype, "detached");
const TypedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const arrayBufferOf = getterOf(TypedArrayPrototype, "buffer");
const dataViewBufferOf = getterOf(DataView.prototype, "buffer");
const typedArrayName = getterOf(TypedArrayPrototype, Symbol.toStringTag);
const slice = Uint8Array.prototype.slice;

/** https://webidl.spec.whatwg.org/#js-buffer-source-types, neither shared nor resizable. */
export function toBufferSource(value, where) {
  let buffer = value;
  if (isView(value)) {
    buffer = typedArrayName.call(value) === undefined ? dataViewBufferOf.call(value) : arrayBufferOf.call(value);
  }
  if (!isArrayBuffer(buffer)) throw new TypeError(`${where}: the value is neither an ArrayBuffer nor a view of one.`);
  if (isResizable.call(buffer)) throw new TypeError(`${where}: the buffer may not be resizable.`);
  return value;
}

/** A view of the current content of a BufferSource, without a copy; empty if it is detached. */
export function viewOf(source) {
  if (isView(source)) return source;
  return isDetached.call(source) ? new Uint8Array(0) : new Uint8Array(source);
}

/** https://webidl.spec.whatwg.org/#dfn-get-buffer-source-copy */
export function copyOf(source) {
  const view = viewOf(source);
  if (typedArrayName.call(view) === "Uint8Array") return slice.call(view);
  const buffer = typedArrayName.call(view) === undefined ? dataViewBufferOf.call(view) : arrayBufferOf.call(view);
  return isDetached.call(buffer) ? new Uint8Array(0) : new Uint8Array(buffer, view.byteOffset, view.byteLength).slice();
}

/** https://webidl.spec.whatwg.org/#abstract-opdef-converttoint with [EnforceRange], from 0 to `most`. */
function toInteger(value, most, where) {
  const number = +value;
  const integer = Math.trunc(number);
  if (!Number.isFinite(number) || integer < 0 || integer > most) {
    throw new TypeError(`${where}: the value is not an integer from 0 to ${most}.`);
  }
  return integer + 0;
}

export const toOctet = (value, where) => toInteger(value, 0xff, where);
export const toUnsignedShort = (value, where) => toInteger(value, 0xffff, where);
export const toUnsignedLong = (value, where) => toInteger(value, 0xffffffff, where);

export function toObjectOrString(value) {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return isObject ? value : toDOMString(value);
}

/** https://w3c.github.io/webcrypto/#big-integer */
export function toBigInteger(value, where) {
  if (!isView(value) || typedArrayName.call(value) !== "Uint8Array") throw new TypeError(`${where}: the value is not a Uint8Array.`);
  return copyOf(toBufferSource(value, where));
}

/** https://webidl.spec.whatwg.org/#js-sequence */
export function toSequenceOf(convert, value, where) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    throw new TypeError(`${where}: the value is not a sequence.`);
  }
  if (typeof value[Symbol.iterator] !== "function") throw new TypeError(`${where}: the value is not iterable.`);
  const list = [];
  for (const item of value) list.push(convert(item, where));
  return list;
}
