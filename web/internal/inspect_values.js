// Formatters of inspect.js for single kinds of value.
import { native } from "./native.js";

const byteLengthOf = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength").get;
const mapSize = Object.getOwnPropertyDescriptor(Map.prototype, "size").get;
const setSize = Object.getOwnPropertyDescriptor(Set.prototype, "size").get;
const regExpSource = Object.getOwnPropertyDescriptor(RegExp.prototype, "source").get;
const typedArrayTag = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
).get;
const dateGetTime = Date.prototype.getTime;
const { isError } = Error; // also true for errors without a prototype
const errorToString = Error.prototype.toString;
const objectToString = Object.prototype.toString;
const weakMapHas = WeakMap.prototype.has;
const weakSetHas = WeakSet.prototype.has;
const UNBOX = [Number, String, Boolean, Symbol, BigInt].map((Class) => Class.prototype.valueOf);

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const SPECIAL = /[\0-\x1f'\\\x7f-\x9f\ud800-\udfff]/;
const ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\" };

const MOST_STRING = 10_000;
const SHORT_STRING = 16; // shorter strings stay on one line, even with line breaks

const LONGEST = 2 ** 27; // longer strings take too long to inspect

/** A string as a literal, in single quotes unless it contains some. */
export function quote(text, most = MOST_STRING) {
  const shown = text.length > most ? text.slice(0, most) : text;
  const rest = text.length - shown.length;
  const tail = rest > 0 ? `... ${rest} more character${rest === 1 ? "" : "s"}` : "";
  if (!SPECIAL.test(shown)) return `'${shown}'${tail}`;
  const mark = !shown.includes("'") ? "'" : !shown.includes('"') ? '"' : !shown.includes("`") ? "`" : "'";
  let body = "";
  for (const char of shown) {
    const code = char.charCodeAt(0);
    const isLone = char.length === 1 && code >= 0xd800 && code <= 0xdfff;
    if (char === mark) body += `\\${mark}`;
    else if (char in ESCAPES) body += ESCAPES[char];
    else if (isLone) body += `\\u${code.toString(16)}`;
    else if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) body += `\\x${code.toString(16).padStart(2, "0").toUpperCase()}`;
    else body += char;
  }
  return `${mark}${body}${mark}${tail}`;
}

// Writes a string of several lines one line below the other if it does not fit beside its surroundings.
function quoteLines(run, text) {
  const isLong = text.length > SHORT_STRING && text.length > run.width - run.path.length * 2 - 4;
  if (run.compact === Infinity || !isLong || text.length > run.characters) return painted(run, quote(text, run.characters), "string");
  return text.split(/(?<=\n)/).map((line) => painted(run, quote(line), "string")).join(" +\n  ");
}

function groupDigits(text) {
  const [, sign, whole, fraction, end] = /^(-?)(\d+)(?:\.(\d+))?(n?)$/.exec(text) ?? [];
  if (whole === undefined) return text;
  const decimals = fraction === undefined ? "" : `.${fraction.replace(/(\d{3})(?=\d)/g, "$1_")}`;
  return `${sign}${whole.replace(/\B(?=(\d{3})+$)/g, "_")}${decimals}${end}`;
}

/** Formats a value that is not an object. Without `run` it is formatted as a literal. */
export function primitive(value, run = undefined) {
  if (typeof value === "string" && value.length > LONGEST) return `(a text of ${value.length} characters)`;
  if (typeof value === "string") return run === undefined ? quote(value) : quoteLines(run, value);
  const text = Object.is(value, -0) ? "-0" : typeof value === "bigint" ? `${value}n` : String(value);
  const isNumber = typeof value === "number" || typeof value === "bigint";
  return painted(run, run?.separated && isNumber ? groupDigits(text) : text, value === null ? "null" : typeof value);
}

/** Text in the colour of a style, if the inspection has colours. */
export function painted(run, text, style) {
  return run?.paint === undefined ? text : run.paint(text, style);
}

/** The name of a property; those that are not enumerable are in brackets. */
export function propertyKey(run, key, isEnumerable) {
  if (typeof key === "symbol") return isEnumerable ? painted(run, String(key), "symbol") : `[${String(key)}]`;
  if (!isEnumerable) return `[${key}]`;
  return IDENTIFIER.test(key) ? key : painted(run, quote(key), "string");
}

/** The primitive in a Number, String, Boolean, Symbol or BigInt object. Throws for others. */
export function unbox(object) {
  for (const valueOf of UNBOX) {
    try {
      return valueOf.call(object);
    } catch {
      // The object is not of this class.
    }
  }
  throw new TypeError("not a boxed value");
}

/** The entries that show an ArrayBuffer, with at most `most` bytes. */
export function bufferContents(run, buffer) {
  const length = byteLengthOf.call(buffer);
  const most = run.items;
  if (buffer.detached) return [painted(run, "(detached)", "special"), `${painted(run, "[byteLength]", "string")}: ${primitive(0, run)}`];
  const shown = new Uint8Array(buffer, 0, Math.min(length, most));
  const hex = Array.from(shown, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const more = length > most ? ` ... ${length - most} more byte${length === most + 1 ? "" : "s"}` : "";
  return [`${painted(run, "[Uint8Contents]", "special")}: <${hex}${more}>`, `${painted(run, "[byteLength]", "string")}: ${primitive(length, run)}`];
}

// Each function throws unless the object is of its kind. Built-ins check internal slots, which no property can fake.
const QUESTIONS = [
  ["Map", (object) => mapSize.call(object)],
  ["Set", (object) => setSize.call(object)],
  ["Date", (object) => dateGetTime.call(object)],
  ["ArrayBuffer", (object) => byteLengthOf.call(object)],
  ["Promise", (object) => native.promiseState(object)],
  ["WeakMap", (object) => weakMapHas.call(object, object)],
  ["WeakSet", (object) => weakSetHas.call(object, object)],
  ["Boxed", unbox],
];

function answers(ask, object) {
  try {
    ask(object);
    return true;
  } catch {
    return false;
  }
}

/** The kind of an object: a key of the formatters in inspect.js, or the name of a typed array. */
export function kindOf(object) {
  if (native.isProxy(object)) return "Proxy";
  if (typeof object === "function") return "Function";
  const prototype = Object.getPrototypeOf(object);
  if (prototype === Object.prototype) return "Object";
  if (Array.isArray(object)) return "Array";
  if (ArrayBuffer.isView(object)) return typedArrayTag.call(object) ?? "DataView";
  if (object instanceof Error || isError(object)) return "Error";
  for (const [kind, ask] of QUESTIONS) if (answers(ask, object)) return kind;
  // The getter `source` does not throw for RegExp.prototype itself.
  if (object !== RegExp.prototype && answers((it) => regExpSource.call(it), object)) return "RegExp";
  const tag = objectToString.call(object);
  if ((tag === "[object Map Iterator]" || tag === "[object Set Iterator]") && native.previewEntries(object) !== undefined) return tag.slice(8, -1);
  return "Object";
}

/** An error as text: its stack, or name and message in brackets if it has none. */
export function stackOf(error, maker) {
  let stack;
  try {
    ({ stack } = error);
  } catch {
    // A getter of the worker threw.
  }
  if (typeof stack !== "string" || stack === "") return `[${errorToString.call(error)}]`;
  const named = withClass(stack, error, maker);
  return /\n {4}at /.test(stack) ? named : `[${named}]`;
}

// V8 begins a stack with the inherited name. If the error has a class of its own, show the name of that class.
function withClass(stack, error, maker) {
  if (maker === null) return stack.replace(/^[A-Z]\w*(?=:|\n|$)/, "[$&: null prototype]");
  const name = textOf(error, "name") ?? "Error";
  if (maker === name || !name.endsWith("Error") || !stack.startsWith(name)) return stack;
  const rest = stack.slice(name.length);
  if (rest !== "" && rest[0] !== ":" && rest[0] !== "\n") return stack;
  return `${maker.includes(name) ? maker : `${maker} [${name}]`}${rest}`;
}

function textOf(error, key) {
  try {
    const value = error[key];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined; // a getter of the worker threw
  }
}

/** True if the stack already shows this property. */
export function isToldBy(stack, error, key) {
  if (key !== "stack" && key !== "message" && key !== "name") return false;
  const text = textOf(error, key);
  return text === undefined || key === "stack" || stack.includes(text);
}

/** The attributes of a platform object. Its getters are part of the platform and safe to call. */
export function attributesOf(object) {
  const attributes = {};
  for (let at = Object.getPrototypeOf(object); at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (descriptor.get === undefined || key in attributes) continue;
      try {
        attributes[key] = descriptor.get.call(object);
      } catch {
        // An attribute that cannot be read now is not shown.
      }
    }
  }
  return attributes;
}
