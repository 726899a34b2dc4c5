// Makes the forms with callbacks and promises from synchronous functions. They do their work at once and tell the result later.
import { queueMicrotask } from "../timers.js";
import { requireFunction } from "./errors.js";

// Wrong arguments throw at once, in every form with a callback. Failures of the file system go to the callback.
const isArgument = (error) => typeof error?.code === "string" && error.code.startsWith("ERR_") && !error.code.startsWith("ERR_FS_");

function settle(run) {
  try {
    return { value: run() };
  } catch (error) {
    if (isArgument(error) || error?.code === undefined) throw error;
    return { error };
  }
}

/** `run(...args, callback)`: the callback gets an error or null, and the result. */
export function withCallback(run) {
  const form = (...args) => {
    const callback = args.pop();
    requireFunction(callback, "cb");
    const { error, value } = settle(() => run(...args));
    queueMicrotask(() => (error === undefined ? callback(null, value) : callback(error)));
  };
  Object.defineProperty(form, "name", { value: run.name });
  return form;
}

/** The same for functions whose callback gets a count and the buffer. */
export function withBufferCallback(run, names) {
  const form = (fd, buffer, ...rest) => {
    const callback = rest.pop();
    requireFunction(callback, "cb");
    const { error, value } = settle(() => run(fd, buffer, ...rest));
    queueMicrotask(() => (error === undefined ? callback(null, value, buffer) : callback(error)));
  };
  Object.defineProperty(form, "name", { value: run.name });
  const promised = (fd, buffer, ...rest) => Promise.try(run, fd, buffer, ...rest).then((count) => ({ [names[0]]: count, [names[1]]: buffer }));
  Object.defineProperty(form, Symbol.for("nodejs.util.promisify.custom"), { value: promised });
  return form;
}

export const asPromise = (run) => {
  const form = async (...args) => run(...args);
  Object.defineProperty(form, "name", { value: run.name });
  return form;
};
