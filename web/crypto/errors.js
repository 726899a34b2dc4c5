// The errors of Web Cryptography, and what becomes of a native result.
import { DOMException } from "../dom/exception.js";

export function operationError(message) {
  return new DOMException(message, "OperationError");
}

export function dataError(message) {
  return new DOMException(message, "DataError");
}

export function accessError(message) {
  return new DOMException(message, "InvalidAccessError");
}

export function syntaxError(message) {
  return new DOMException(message, "SyntaxError");
}

export function notSupported(message) {
  return new DOMException(message, "NotSupportedError");
}

/** What C++ made of an operation, or of a promise of one: undefined if it failed, null if it ran out of CPU time. */
export async function resultOf(value, message) {
  const result = await value;
  if (result === undefined) throw operationError(message);
  if (result === null) throw operationError("The operation needs more CPU time than this request has left; see limits.cpu_ms.");
  return result;
}
