// Errors as Node's API documents them: the class of the language, with a permanent `code`.
// https://nodejs.org/api/errors.html#nodejs-error-codes
import { inspect } from "../internal/inspect.js";

/** An error of `Class` that carries a code, as Node shows it: `TypeError [ERR_X]: message`. */
export function codedError(Class, code, message) {
  const error = new Class(message);
  Error.captureStackTrace(error, codedError);
  error.code = code;
  return error;
}

/** What a value is, for messages. */
export function describe(value) {
  if (value === undefined || value === null) return `${value}`;
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "object") {
    const name = value.constructor?.name;
    return name ? `an instance of ${name}` : inspect(value, { depth: -1 });
  }
  return `type ${typeof value} (${inspect(value).slice(0, 28)})`;
}

/** https://nodejs.org/api/errors.html#err_invalid_arg_type */
export function invalidArgument(name, expected, value) {
  return codedError(
    TypeError,
    "ERR_INVALID_ARG_TYPE",
    `The "${name}" argument must be ${expected}. Received ${describe(value)}`,
  );
}

/** https://nodejs.org/api/errors.html#err_out_of_range */
export function outOfRange(name, range, value) {
  return codedError(
    RangeError,
    "ERR_OUT_OF_RANGE",
    `The value of "${name}" is out of range. It must be ${range}. Received ${typeof value === "bigint" ? `${value}n` : String(value)}`,
  );
}

/** https://nodejs.org/api/errors.html#abort_err: Node's own, which is no DOMException. */
export class AbortError extends Error {
  constructor(signal) {
    super("The operation was aborted", { cause: signal.reason });
    this.code = "ABORT_ERR";
    this.name = "AbortError";
  }
}

/** https://nodejs.org/api/errors.html#err_invalid_arg_value */
export function invalidValue(name, value, reason = "is invalid") {
  return codedError(TypeError, "ERR_INVALID_ARG_VALUE", `The argument '${name}' ${reason}. Received ${inspect(value)}`);
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
