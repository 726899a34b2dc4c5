// https://console.spec.whatwg.org/#formatter
import { inspect } from "./internal/inspect.js";
import { native } from "./internal/native.js";

function toInteger(value) {
  if (typeof value === "bigint") return `${value}n`;
  try {
    return `${parseInt(value, 10)}`;
  } catch {
    return "NaN";
  }
}

function toFloat(value) {
  try {
    return `${parseFloat(value)}`;
  } catch {
    return "NaN";
  }
}

function toNumber(value) {
  if (typeof value === "bigint") return `${value}n`;
  try {
    const number = Number(value);
    return Object.is(number, -0) ? "-0" : `${number}`;
  } catch {
    return "NaN"; // a symbol, or an object whose conversion throws
  }
}

function toJson(value, show) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // A log line must not fail: a value that JSON cannot represent is inspected.
    return /circular structure/.test(error?.message) ? "[Circular]" : show(value);
  }
}

const { hasOwnProperty, toString: objectToString } = Object.prototype;
const errorToString = Error.prototype.toString;
const dateToString = Date.prototype.toString;
const arrayToString = Array.prototype.toString;
const LANGUAGE = [objectToString, errorToString, dateToString];
for (const Class of [RegExp, Number, String, Boolean, Symbol, BigInt]) LANGUAGE.push(Class.prototype.toString);

// True for an object with its own toString, not one of the language.
function hasOwnText(value) {
  const { toString } = value;
  if (toString === arrayToString) return ArrayBuffer.isView(value);
  return typeof toString === "function" && !LANGUAGE.includes(toString) && !hasOwnProperty.call(value, Symbol.toStringTag);
}

// %s: strings unchanged, objects at depth 0.
function toStringText(value, show) {
  if (typeof value === "bigint") return `${value}n`;
  if (Object.is(value, -0)) return "-0";
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return String(value);
  try {
    if (!native.isProxy(value) && hasOwnText(value)) return String(value);
  } catch {
    // Format it like any other object.
  }
  return show(value, { depth: 0 });
}

const SPECIFIERS = {
  s: toStringText,
  d: toNumber,
  i: toInteger,
  f: toFloat,
  j: toJson,
  o: (value, show) => show(value, { depth: 4 }),
  O: (value, show) => show(value),
  c: () => "", // a log has no colours
};

const LONGEST = 2 ** 27; // longer strings take too long to inspect

const bounded = (value) => (typeof value === "string" && value.length > LONGEST ? `(a text of ${value.length} characters)` : value);

/** The arguments of console.log as one string. `show` formats an object. */
export function formatArguments(data, show = inspect) {
  const toText = (value) => (typeof value === "string" ? value : show(value));
  const values = data.map(bounded);
  const [first, ...rest] = values;
  if (typeof first !== "string") return values.map(toText).join(" ");
  if (rest.length === 0) return first;
  let used = 0;
  const text = first.includes("%")
    ? first.replace(/%([sdifjoOc%])/g, (match, specifier) => {
        if (specifier === "%") return "%";
        return used < rest.length ? SPECIFIERS[specifier](rest[used++], show) : match;
      })
    : first;
  return [text, ...rest.slice(used).map(toText)].join(" ");
}
