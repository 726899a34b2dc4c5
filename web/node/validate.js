// Checks of arguments that several modules need, with the errors of Node.
import { invalidArgument, outOfRange } from "./errors.js";

export function requireBoolean(value, name) {
  if (typeof value !== "boolean") throw invalidArgument(name, "of type boolean", value);
}

/** An integer from `min` to `max`. */
export function requireInteger(value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}
