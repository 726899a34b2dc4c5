// https://console.spec.whatwg.org/
import { lazy } from "./internal/lazy.js";
import { native } from "./internal/native.js";
import { inspect } from "./internal/show.js";
import { Level } from "./internal/wire.gen.js";

const { captureStackTrace } = Error;

// The worker's counts and timers, and how many groups are open.
const counts = new Map();
const timers = new Map();
let groups = 0;

const MOST_INDENT = 20; // most groups shown by indentation
const MOST_TEXT = 256 * 1024; // most characters of a log line

/** https://console.spec.whatwg.org/#formatter. Most lines are one string, which does not need console_format.js. */
function formatArguments(data) {
  return data.length === 1 && typeof data[0] === "string" ? data[0] : lazy("console_format.js").formatArguments(data);
}

/** https://console.spec.whatwg.org/#printer */
function print(level, text) {
  if (groups === 0) {
    native.log(level, text);
    return;
  }
  const indent = "  ".repeat(Math.min(groups, MOST_INDENT));
  native.log(level, indent + text.slice(0, MOST_TEXT).replaceAll("\n", `\n${indent}`));
}

/** https://console.spec.whatwg.org/#logger */
function logger(level) {
  return (...data) => {
    if (data.length > 0) print(level, formatArguments(data));
  };
}

const error = logger(Level.ERROR);
const info = logger(Level.INFO);
const log = logger(Level.LOG);
const warn = logger(Level.WARN);
const debug = logger(Level.DEBUG);

function stackTrace(title, caller) {
  const holder = { name: title, message: "" };
  let stack = "";
  try {
    captureStackTrace(holder, caller);
    if (typeof holder.stack === "string") ({ stack } = holder);
  } catch {
    // The worker's Error.prepareStackTrace threw.
  }
  const lines = stack.split("\n").filter((line) => line.startsWith("    at "));
  return [title, ...lines].join("\n");
}

function labelOf(label) {
  return label === undefined ? "default" : `${label}`;
}

function formatDuration(milliseconds) {
  if (milliseconds < 1000) return `${Number(milliseconds.toFixed(3))}ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(3)}s`;
  return `${(milliseconds / 60_000).toFixed(3)}m`;
}

function printTimer(label, data) {
  const name = labelOf(label);
  const start = timers.get(name);
  if (start === undefined) {
    warn(`Timer '${name}' does not exist`);
    return false;
  }
  const rest = data.length > 0 ? ` ${formatArguments(data)}` : "";
  print(Level.LOG, `${name}: ${formatDuration(native.now() - start)}${rest}`);
  return true;
}

function openGroup(data) {
  if (data.length > 0) log(...data);
  groups++;
}

// A namespace object of Web IDL: https://webidl.spec.whatwg.org/#js-namespaces
const methods = {
  /** https://console.spec.whatwg.org/#assert */
  assert(condition = false, ...data) {
    if (condition) return;
    if (data.length === 0) error("Assertion failed");
    else if (typeof data[0] === "string") error(`Assertion failed: ${data[0]}`, ...data.slice(1));
    else error("Assertion failed:", ...data);
  },

  /** https://console.spec.whatwg.org/#clear: a log has no screen to clear. */
  clear() {
    groups = 0;
  },

  debug,
  error,
  info,
  log,
  warn,

  /** https://console.spec.whatwg.org/#table */
  table(data = undefined, properties = undefined) {
    let table = null;
    try {
      table = lazy("console_table.js").formatTable(data, properties);
    } catch {
      // A getter or a proxy threw, so the data is not shown as a table.
    }
    if (table === null) log(data);
    else print(Level.LOG, table);
  },

  /** https://console.spec.whatwg.org/#trace */
  trace(...data) {
    print(Level.DEBUG, stackTrace(data.length > 0 ? `Trace: ${formatArguments(data)}` : "Trace", methods.trace));
  },

  /** https://console.spec.whatwg.org/#dir */
  dir(item = undefined, options = undefined) {
    const depth = options?.depth === null ? Infinity : options?.depth;
    print(Level.LOG, inspect(item, typeof depth === "number" ? { depth } : {}));
  },

  /** https://console.spec.whatwg.org/#dirxml */
  dirxml: logger(Level.LOG),

  /** https://console.spec.whatwg.org/#count */
  count(label = undefined) {
    const name = labelOf(label);
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    print(Level.LOG, `${name}: ${count}`);
  },

  /** https://console.spec.whatwg.org/#countreset */
  countReset(label = undefined) {
    const name = labelOf(label);
    if (counts.has(name)) counts.set(name, 0);
    else warn(`Count for '${name}' does not exist`);
  },

  // Marks for the profiler of a browser, which has no equivalent here. They do nothing, so code that uses them still runs.
  profile() {},
  profileEnd() {},
  timeStamp() {},

  /** https://console.spec.whatwg.org/#group */
  group(...data) {
    openGroup(data);
  },

  /** https://console.spec.whatwg.org/#groupcollapsed */
  groupCollapsed(...data) {
    openGroup(data);
  },

  /** https://console.spec.whatwg.org/#groupend */
  groupEnd() {
    groups = Math.max(groups - 1, 0);
  },

  /** https://console.spec.whatwg.org/#time */
  time(label = undefined) {
    const name = labelOf(label);
    if (timers.has(name)) warn(`Timer '${name}' already exists`);
    else timers.set(name, native.now());
  },

  /** https://console.spec.whatwg.org/#timelog */
  timeLog(label = undefined, ...data) {
    printTimer(label, data);
  },

  /** https://console.spec.whatwg.org/#timeend */
  timeEnd(label = undefined) {
    if (printTimer(label, [])) timers.delete(labelOf(label));
  },
};

export const console = Object.create({});
for (const [name, method] of Object.entries(methods)) {
  Object.defineProperty(method, "name", { value: name, configurable: true });
  Object.defineProperty(console, name, { value: method, writable: true, enumerable: true, configurable: true });
}
Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
