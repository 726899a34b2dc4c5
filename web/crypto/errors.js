// The errors of Web Cryptography, and the results of native functions.
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

/** The result of a native function, or of its promise: undefined if it failed, null if it ran out of CPU time. */
export async function resultOf(value, message) {
  const result = await value;
  if (result === undefined) throw operationError(message);
  if (result === null) throw operationError("The operation needs more CPU time than this request has left; see limits.cpu_ms.");
  return result;
}
