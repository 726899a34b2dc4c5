// Errors of workflows: https://developers.cloudflare.com/workflows/build/workers-api/

/** A class of errors. Its name is a text here: the bundler may rename classes. */
function define(name) {
  const Class = class extends Error {};
  Object.defineProperty(Class, "name", { value: name, configurable: true });
  Object.defineProperty(Class.prototype, "name", { value: name, writable: true, configurable: true });
  return Class;
}

export const WorkflowError = define("WorkflowError");
export const WorkflowFatalError = define("WorkflowFatalError");
export const WorkflowTimeoutError = define("WorkflowTimeoutError");

/** An error with a code that programs look for. */
export function codedError(code, message) {
  return new WorkflowError(`(${code}) ${message}`);
}

/** The attempt of a step whose engine ended before it did. */
export const INTERRUPTED = Object.freeze({ name: "WorkflowInternalError", message: "Attempt failed due to internal workflows error" });

/** Whether an exception ends the retries of its step. It may have come from another worker, which sends the name alone. */
export function endsRetries(error) {
  return error instanceof Error && (error.name === "NonRetryableError" || error.message.startsWith("NonRetryableError"));
}

/** Name and message of what was thrown. Never throws, even if reading it does. */
export function describe(error) {
  try {
    if (error instanceof Error) return { name: `${error.name}`.slice(0, 256), message: `${error.message}`.slice(0, 8192) };
    return { name: "Error", message: `${error}`.slice(0, 8192) };
  } catch {
    return { name: "Error", message: "an exception that cannot be read" };
  }
}

const KNOWN = { __proto__: null, Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, WorkflowFatalError, WorkflowTimeoutError };

/** A stored error, as the code of the workflow gets it: at first, and whenever the code runs again. */
export function thrown({ name, message }) {
  const Class = KNOWN[name];
  if (Class !== undefined) return new Class(message);
  return Object.defineProperty(new Error(message), "name", { value: name, writable: true, configurable: true });
}
