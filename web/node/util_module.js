// https://nodejs.org/api/util.html
import { AbortController, isAbortSignal } from "../dom/abort.js";
import { formatArguments } from "../console_format.js";
import { TextDecoder } from "../encoding/text_decoder.js";
import { TextEncoder } from "../encoding/text_encoder.js";
import { inspect as inspectValue } from "../internal/inspect.js";
import { codedError, invalidArgument, requireFunction, requireObject, requireString } from "./errors.js";
import { isDeepEqual } from "./deep_equal.js";
import { MIMEParams, MIMEType } from "./mime_type.js";
import { getBuiltIn } from "./modules.js";
import { parseArgs } from "./parse_args.js";
import { parseEnv as parseEnvText } from "./parse_env.js";
import { colors, paint, styles, styleText } from "./util_styles.js";
import {
  _errnoException, _exceptionWithHostPort, _extend, convertProcessSignalToExitCode, diff, getCallSites, getSystemErrorMap,
  getSystemErrorMessage, getSystemErrorName, setTraceSigInt,
} from "./util_system.js";

const custom = Symbol.for("nodejs.util.inspect.custom");
const promisified = Symbol.for("nodejs.util.promisify.custom");

/** `inspect(value, { depth, breakLength, … })`, or the older `inspect(value, showHidden, depth, colors)`. */
export function inspect(value, options = undefined, oldDepth = undefined, oldColors = undefined) {
  const given = typeof options === "object" && options !== null ? options : { showHidden: options === true, depth: oldDepth, colors: oldColors };
  return inspectValue(value, {
    ...(given.depth === undefined ? {} : { depth: given.depth === null ? Infinity : given.depth }),
    ...(given.maxArrayLength === undefined ? {} : { items: given.maxArrayLength ?? Infinity }),
    ...(given.breakLength === undefined ? {} : { width: given.breakLength }),
    ...(given.compact === undefined ? {} : { compact: given.compact === true ? Infinity : Number(given.compact) }),
    ...(given.maxStringLength === undefined ? {} : { characters: given.maxStringLength ?? Infinity }),
    sorted: !!given.sorted,
    separated: !!given.numericSeparator,
    getters: given.getters ?? false,
    custom: given.customInspect !== false,
    hidden: given.showHidden === true,
    proxies: given.showProxy === true,
    paint: given.colors ? paint : undefined,
  });
}
Object.assign(inspect, {
  custom,
  defaultOptions: {
    showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000,
    breakLength: 80, compact: 3, sorted: false, getters: false, numericSeparator: false,
  },
  colors,
  styles,
});

export function format(...args) {
  return formatArguments(args);
}

export function formatWithOptions(options, ...args) {
  requireObject(options, "inspectOptions");
  return formatArguments(args, (value, more) => inspect(value, { ...options, ...more }));
}

/** https://nodejs.org/api/util.html#utilpromisifyoriginal */
export function promisify(original) {
  requireFunction(original, "original");
  const own = original[promisified];
  if (own !== undefined) {
    requireFunction(own, "util.promisify.custom");
    return Object.defineProperty(own, promisified, { value: own, configurable: true });
  }
  function promise(...args) {
    return new Promise((resolve, reject) => {
      original.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value)));
    });
  }
  Object.setPrototypeOf(promise, Object.getPrototypeOf(original));
  Object.defineProperty(promise, promisified, { value: promise, configurable: true });
  return Object.defineProperties(promise, Object.getOwnPropertyDescriptors(original));
}
promisify.custom = promisified;

/** https://nodejs.org/api/util.html#utilcallbackifyoriginal */
export function callbackify(original) {
  requireFunction(original, "original");
  return function callbackified(...args) {
    const callback = args.pop();
    requireFunction(callback, "last argument");
    const later = (...results) => Promise.resolve().then(() => callback(...results));
    original.apply(this, args).then(
      (value) => later(null, value),
      (reason) => {
        if (reason) return later(reason);
        const error = codedError(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value");
        error.reason = reason;
        return later(error);
      },
    );
  };
}

const told = new Set(); // codes of deprecations that were already logged

/** Logs once that a function is deprecated. */
export function deprecate(original, message, code = undefined) {
  let warned = false;
  function deprecated(...args) {
    if (!warned && (code === undefined || !told.has(code))) {
      if (code !== undefined) told.add(code);
      globalThis.console.warn(`${code === undefined ? "" : `[${code}] `}DeprecationWarning: ${message}`);
    }
    warned = true;
    return new.target ? Reflect.construct(original, args, new.target) : original.apply(this, args);
  }
  Object.setPrototypeOf(deprecated, original);
  if (original.prototype) deprecated.prototype = original.prototype;
  return deprecated;
}

export function inherits(constructor, superConstructor) {
  if (constructor === undefined || constructor === null) throw invalidArgument("ctor", "of type function", constructor);
  if (superConstructor === undefined || superConstructor === null) throw invalidArgument("superCtor", "of type function", superConstructor);
  if (superConstructor.prototype === undefined) throw invalidArgument("superCtor.prototype", "of type object", undefined);
  Object.defineProperty(constructor, "super_", { value: superConstructor, writable: true, configurable: true });
  Object.setPrototypeOf(constructor.prototype, superConstructor.prototype);
}

const patterns = new Map(); // NODE_DEBUG -> function that tells whether it names a section

function namesSection(list, section) {
  if (!patterns.has(list)) {
    const parts = list.split(",").map((part) => part.trim().toUpperCase().split("*"));
    patterns.set(list, (name) => parts.some(([first, ...rest]) => (rest.length === 0 ? name === first : name.startsWith(first) && name.endsWith(rest.at(-1)))));
  }
  return patterns.get(list)(section);
}

/** https://nodejs.org/api/util.html#utildebuglogsection-callback: logs if the variable NODE_DEBUG names the section. */
export function debuglog(section, callback = undefined) {
  const name = `${section}`.toUpperCase();
  const isEnabled = () => namesSection(getBuiltIn("process").env.NODE_DEBUG ?? "", name);
  const logger = (...args) => {
    if (isEnabled()) globalThis.console.error(`${name}: ${format(...args)}`);
  };
  if (typeof callback === "function") callback(logger);
  return Object.defineProperty(logger, "enabled", { get: isEnabled, configurable: true, enumerable: true });
}

/** An older function of Node. */
export function log(...args) {
  const now = new Date();
  const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][now.getMonth()];
  const { console } = globalThis;
  Reflect.apply(console.log, console, ["%s - %s", `${now.getDate()} ${month} ${now.toTimeString().slice(0, 8)}`, format(...args)]);
}

export function transferableAbortController() {
  return new AbortController();
}

export function transferableAbortSignal(signal) {
  if (!isAbortSignal(signal)) throw invalidArgument("signal", "an instance of AbortSignal", signal);
  return signal;
}

export function isDeepStrictEqual(a, b) {
  return isDeepEqual(a, b, true);
}

export function stripVTControlCharacters(text) {
  requireString(text, "str");
  return text.replace(/[\u001B\u009B][[\]()#;?]*(?:(?:(?:;[-\w/#&.:=?%@~]+)*|[\w]+(?:;[-\w/#&.:=?%@~]*)*)?\u0007|(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~])/g, "");
}

export function toUSVString(text) {
  return `${text}`.toWellFormed();
}

export async function aborted(signal, resource) {
  if (!isAbortSignal(signal)) throw invalidArgument("signal", "an instance of AbortSignal", signal);
  if (resource === null || typeof resource !== "object") throw invalidArgument("resource", "of type object", resource);
  if (signal.aborted) return;
  await new Promise((resolve) => {
    signal.addEventListener("abort", resolve, { once: true });
  });
}

export function parseEnv(content) {
  requireString(content, "content");
  return parseEnvText(content);
}

export {
  _errnoException, _exceptionWithHostPort, _extend, convertProcessSignalToExitCode, diff, getCallSites, getSystemErrorMap,
  getSystemErrorMessage, getSystemErrorName, setTraceSigInt, styleText,
};
export { MIMEParams, MIMEType, parseArgs, TextDecoder, TextEncoder };
export const types = getBuiltIn("util/types");
export { debuglog as debug };

// Older functions of Node, which Cloudflare's runtime still has and older packages call.
export const isArray = Array.isArray;
export const isBoolean = (value) => typeof value === "boolean";
export const isBuffer = (value) => getBuiltIn("buffer").Buffer.isBuffer(value);
export const { isDate, isRegExp } = types;
export const isError = (value) => types.isNativeError(value) || value instanceof Error;
export const isFunction = (value) => typeof value === "function";
export const isNull = (value) => value === null;
export const isNullOrUndefined = (value) => value === null || value === undefined;
export const isNumber = (value) => typeof value === "number";
export const isObject = (value) => value !== null && typeof value === "object";
export const isPrimitive = (value) => value === null || (typeof value !== "object" && typeof value !== "function");
export const isString = (value) => typeof value === "string";
export const isSymbol = (value) => typeof value === "symbol";
export const isUndefined = (value) => value === undefined;
export { getCallSites as getCallSite };
