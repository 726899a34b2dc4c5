// Errors with Node's codes: a class of the language with a stable `code`.
// https://nodejs.org/api/errors.html#nodejs-error-codes
import { inspect } from "../internal/inspect.js";

/** An error of `Class` with a code, shown as in Node: `TypeError [ERR_X]: message`. */
export function codedError(Class, code, message) {
  const error = new Class(message);
  Error.captureStackTrace(error, codedError);
  error.code = code;
  return error;
}

/** Describes a value for error messages. */
export function describe(value) {
  if (value === undefined || value === null) return `${value}`;
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "object") {
    const name = value.constructor?.name;
    return name ? `an instance of ${name}` : inspect(value, { depth: -1 });
  }
  if (typeof value === "string" && value.length > 28) return describe(`${value.slice(0, 25)}...`);
  const text = inspect(value);
  return `type ${typeof value} (${text.length > 40 ? `${text.slice(0, 25)}...` : text})`;
}

const kindOf = (name) => (name.includes(".") ? "property" : "argument");

/** https://nodejs.org/api/errors.html#err_invalid_arg_type */
export function invalidArgument(name, expected, value) {
  return codedError(
    TypeError,
    "ERR_INVALID_ARG_TYPE",
    `The "${name}" ${kindOf(name)} must be ${expected}. Received ${describe(value)}`,
  );
}

const LARGE = 2 ** 32;

// Node shows large numbers with separators.
function received(value) {
  if (typeof value !== "bigint" && !Number.isInteger(value)) return inspect(value);
  const text = value > LARGE || value < -LARGE ? `${value}`.replace(/\B(?=(\d{3})+$)/g, "_") : `${value}`;
  return typeof value === "bigint" ? `${text}n` : text;
}

/** https://nodejs.org/api/errors.html#err_out_of_range */
export function outOfRange(name, range, value) {
  return codedError(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${range}. Received ${received(value)}`);
}

/** https://nodejs.org/api/errors.html#abort_err: Node's class, which is not a DOMException. */
export class AbortError extends Error {
  constructor(signal) {
    super("The operation was aborted", { cause: signal.reason });
    this.code = "ABORT_ERR";
    this.name = "AbortError";
  }
}

/** https://nodejs.org/api/errors.html#err_invalid_arg_value */
export function invalidValue(name, value, reason = "is invalid") {
  const text = inspect(value);
  return codedError(TypeError, "ERR_INVALID_ARG_VALUE", `The ${kindOf(name)} '${name}' ${reason}. Received ${text.length > 128 ? `${text.slice(0, 128)}...` : text}`);
}

export function requireString(value, name) {
  if (typeof value !== "string") throw invalidArgument(name, "of type string", value);
}

export function requireFunction(value, name) {
  if (typeof value !== "function") throw invalidArgument(name, "of type function", value);
}

export function requireNumber(value, name) {
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
}

export function requireObject(value, name) {
  if (typeof value !== "object" || value === null) throw invalidArgument(name, "of type object", value);
}

/** An integer of 32 bits without sign; `from` is the least. */
export function requireUint32(value, name, from = 0) {
  requireNumber(value, name);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < from || value > 0xffffffff) throw outOfRange(name, `>= ${from} && <= 4294967295`, value);
}
