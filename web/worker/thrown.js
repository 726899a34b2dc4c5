// Serializes an exception for another worker: class, message and own properties. The stack is not shown to that worker.
import { deserialize, serialize } from "../dom/clone.js";
import { DOMException } from "../dom/exception.js";
import { inspect } from "../internal/inspect.js";
import { native } from "../internal/native.js";
import { isOn } from "./compatibility.js";

const ERRORS = { __proto__: null, Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };
const MOST_BYTES = 64 * 1024; // most bytes of own properties
const NOT_OWN = ["name", "message", "stack"];

/** The exception as JSON. Never throws, even if reading the exception does. */
export function describeThrown(error) {
  try {
    if (!(error instanceof Error)) return { name: "", message: typeof error === "string" ? error : inspect(error), stack: "" };
    const { name, message, stack } = error;
    return { name: `${name}`, message: `${message}`, stack: `${stack}`, dom: error instanceof DOMException, own: ownProperties(error) };
  } catch {
    return { name: "Error", message: "an exception that cannot be read", stack: "" };
  }
}

/** Own properties as a structured clone in base64, without those that cannot be cloned. */
function ownProperties(error) {
  if (!isOn("enhanced_error_serialization")) return undefined;
  const own = {};
  const keys = Object.keys(error);
  for (const key of ["cause", "errors"]) if (Object.hasOwn(error, key) && !keys.includes(key)) keys.push(key);
  for (const key of keys) {
    if (NOT_OWN.includes(key)) continue;
    try {
      const value = error[key];
      serialize(value);
      Object.defineProperty(own, key, { value, enumerable: true });
    } catch {
      // It cannot be cloned, so it is left out.
    }
  }
  if (Object.keys(own).length === 0) return undefined;
  const { bytes } = serialize(own);
  return bytes.length > MOST_BYTES ? undefined : native.btoa(String.fromCharCode(...bytes));
}

/** An error of a class that only the other worker knows keeps its name; with older compatibility dates in its message. */
function makeError(name, message, isDom) {
  if (isDom) return new DOMException(message, name);
  if (name in ERRORS || name === "") return new (ERRORS[name] ?? Error)(message);
  if (!isOn("enhanced_error_serialization")) return new Error(`${name}: ${message}`);
  return Object.defineProperty(new Error(message), "name", { value: name, writable: true, configurable: true });
}

/** An error within a value that travels, if it has more than V8 writes of it: what makeSent() needs. */
export function describeSent(error) {
  const own = ownProperties(error);
  if (own === undefined && !Object.hasOwn(error, "name")) return undefined;
  const { name, message, stack } = error;
  return { name: `${name}`, message: `${message}`, stack: `${stack}`, own };
}

/** The error in a value that has arrived. */
export function makeSent({ name, message, stack, own }) {
  const error = withOwn(makeError(name, message, false), own);
  Object.defineProperty(error, "stack", { value: stack, writable: true, configurable: true });
  return error;
}

/** The error to throw here for an exception that another worker threw. */
export function makeThrown({ name, message, dom, own, flags }) {
  const error = makeError(name, message, dom === true);
  error.remote = true;
  Object.assign(error, flags);
  return withOwn(error, own);
}

function withOwn(error, own) {
  if (typeof own !== "string") return error;
  const text = native.atob(own);
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  for (const [key, value] of Object.entries(deserialize(bytes))) {
    const enumerable = key !== "cause" && key !== "errors";
    Object.defineProperty(error, key, { value, writable: true, enumerable, configurable: true });
  }
  return error;
}
