// https://nodejs.org/api/util.html#utiltypes: the type of a value, independent of its properties.
import { native } from "../internal/native.js";
import { kindOf, unbox } from "../internal/inspect_values.js";
import { isArrayBuffer } from "../internal/webidl.js";

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
// For a proxy kindOf returns "Proxy", not the kind of its target.
const isKind = (kind) => (value) => isObject(value) && kindOf(value) === kind;
const toStringTag = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
const typedArrayName = (value) => (ArrayBuffer.isView(value) ? toStringTag.call(value) : undefined);
/** True for an ArrayBuffer or a SharedArrayBuffer: a DataView accepts nothing else. */
const isViewable = (value) => {
  try {
    new DataView(value);
    return true;
  } catch {
    return false;
  }
};
const sourceText = Function.prototype.toString;

export const isProxy = (value) => native.isProxy(value);
export const isMap = isKind("Map");
export const isSet = isKind("Set");
export const isDate = isKind("Date");
export const isRegExp = isKind("RegExp");
export const isPromise = isKind("Promise");
export const isWeakMap = isKind("WeakMap");
export const isWeakSet = isKind("WeakSet");
export const isNativeError = (value) => isObject(value) && !native.isProxy(value) && Object.prototype.toString.call(value) === "[object Error]";
export const isBoxedPrimitive = isKind("Boxed");
export const isArrayBufferView = (value) => ArrayBuffer.isView(value);
export const isTypedArray = (value) => typedArrayName(value) !== undefined;
export const isDataView = (value) => ArrayBuffer.isView(value) && typedArrayName(value) === undefined;
export { isArrayBuffer };
export const isSharedArrayBuffer = (value) => isObject(value) && !isArrayBuffer(value) && isViewable(value);
export const isAnyArrayBuffer = (value) => isArrayBuffer(value) || isSharedArrayBuffer(value);
export const isExternal = () => false;
export const isModuleNamespaceObject = (value) =>
  isObject(value) && !native.isProxy(value) && Object.getPrototypeOf(value) === null && value[Symbol.toStringTag] === "Module";

const isBoxed = (type) => (value) => isBoxedPrimitive(value) && typeof unbox(value) === type;
export const isNumberObject = isBoxed("number");
export const isStringObject = isBoxed("string");
export const isBooleanObject = isBoxed("boolean");
export const isBigIntObject = isBoxed("bigint");
export const isSymbolObject = isBoxed("symbol");

const isTyped = (name) => (value) => typedArrayName(value) === name;
export const isUint8Array = isTyped("Uint8Array");
export const isUint8ClampedArray = isTyped("Uint8ClampedArray");
export const isUint16Array = isTyped("Uint16Array");
export const isUint32Array = isTyped("Uint32Array");
export const isInt8Array = isTyped("Int8Array");
export const isInt16Array = isTyped("Int16Array");
export const isInt32Array = isTyped("Int32Array");
export const isFloat16Array = isTyped("Float16Array");
export const isFloat32Array = isTyped("Float32Array");
export const isFloat64Array = isTyped("Float64Array");
export const isBigInt64Array = isTyped("BigInt64Array");
export const isBigUint64Array = isTyped("BigUint64Array");

const startsWith = (pattern) => (value) => typeof value === "function" && pattern.test(sourceText.call(value));
export const isAsyncFunction = startsWith(/^async\b/);
export const isGeneratorFunction = startsWith(/^(?:async\s+)?(?:function\s*)?\*/);
const tagged = (tag) => (value) => isObject(value) && Object.prototype.toString.call(value) === `[object ${tag}]`;
export const isGeneratorObject = tagged("Generator");
export const isMapIterator = tagged("Map Iterator");
export const isSetIterator = tagged("Set Iterator");
export const isArgumentsObject = (value) => isObject(value) && !(Symbol.toStringTag in value) && tagged("Arguments")(value);
export const isKeyObject = () => false;
export const isCryptoKey = tagged("CryptoKey");
