// Makes the forms with callbacks and promises from synchronous functions. They do their work at once and tell the result later.
import { queueMicrotask } from "../timers.js";
import { Buffer } from "./buffer.js";
import { requireFunction } from "./errors.js";
import { descriptorOf } from "./fs_arguments.js";

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

const MOST_READ = 16_384; // bytes, without a buffer of the caller

/** `read(fd, buffer, offset, length, position)`, `read(fd, buffer, options)` and `read(fd, options)`. */
export function readArguments([first, ...rest]) {
  if (ArrayBuffer.isView(first) || rest.length > 1) return [first, ...rest];
  const options = first ?? {};
  if (typeof options !== "object") return [first, ...rest];
  const { buffer = Buffer.alloc(MOST_READ), offset = 0, length, position = null } = options;
  return [buffer, offset ?? 0, length ?? (buffer?.byteLength ?? 0) - (offset ?? 0), position];
}

/** The same for functions whose callback gets a count and the buffer. */
export function withBufferCallback(run, names) {
  const form = (fd, ...given) => {
    descriptorOf(fd);
    const callback = given.pop();
    requireFunction(callback, "cb");
    const [buffer, ...rest] = names[0] === "bytesRead" && names[1] === "buffer" ? readArguments(given) : given;
    const { error, value } = settle(() => run(fd, buffer, ...rest));
    queueMicrotask(() => (error === undefined ? callback(null, value, buffer) : callback(error)));
  };
  Object.defineProperty(form, "name", { value: run.name });
  const promised = async (fd, ...given) => {
    const [buffer, ...rest] = names[0] === "bytesRead" && names[1] === "buffer" ? readArguments(given) : given;
    return { [names[0]]: run(fd, buffer, ...rest), [names[1]]: buffer };
  };
  Object.defineProperty(form, Symbol.for("nodejs.util.promisify.custom"), { value: promised });
  return form;
}

export const asPromise = (run) => {
  const form = async (...args) => run(...args);
  Object.defineProperty(form, "name", { value: run.name });
  return form;
};
