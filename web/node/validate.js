// Checks of arguments that several modules need, with the errors of Node.
import { invalidArgument, invalidValue, outOfRange, requireString } from "./errors.js";

export function requireBoolean(value, name) {
  if (typeof value !== "boolean") throw invalidArgument(name, "of type boolean", value);
}

/** An integer from `min` to `max`. */
export function requireInteger(value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}

/** An object that is no array. */
export function requireOptions(value, name) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidArgument(name, "of type object", value);
}

export function requireArray(value, name) {
  if (!Array.isArray(value)) throw invalidArgument(name, "an instance of Array", value);
}

export function requireStrings(value, name) {
  requireArray(value, name);
  value.forEach((each, i) => requireString(each, `${name}[${i}]`));
}

export function requireOneOf(value, name, allowed) {
  if (!allowed.includes(value)) {
    throw invalidValue(name, value, `must be one of: ${allowed.map((each) => (typeof each === "string" ? `'${each}'` : `${each}`)).join(", ")}`);
  }
}
