// https://console.spec.whatwg.org/#formatter
import { inspect } from "./internal/inspect.js";
import { native } from "./internal/native.js";
import { interfaceOf } from "./internal/platform.js";

function toText(value) {
  return typeof value === "string" ? value : inspect(value);
}

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
    return "NaN"; // a symbol, or an object that throws when it is asked
  }
}

function toJson(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return "[Circular]";
  }
}

const { hasOwnProperty, toString: objectToString } = Object.prototype;
const errorToString = Error.prototype.toString;
const dateToString = Date.prototype.toString;
const arrayToString = Array.prototype.toString;
const LANGUAGE = [objectToString, errorToString, dateToString, arrayToString, RegExp.prototype.toString];

// An object that says itself how it reads: by a toString that is not the language's.
function hasOwnText(value) {
  const { toString } = value;
  return typeof toString === "function" && !LANGUAGE.includes(toString) && !hasOwnProperty.call(value, Symbol.toStringTag);
}

// What %s shows: texts as they are, objects on a short leash.
function toStringText(value) {
  if (typeof value === "bigint") return `${value}n`;
  if (Object.is(value, -0)) return "-0";
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return String(value);
  try {
    if (!native.isProxy(value) && interfaceOf(value) === undefined && hasOwnText(value)) return String(value);
  } catch {
    // Then as any other object.
  }
  return inspect(value, { depth: 0 });
}

const SPECIFIERS = {
  s: toStringText,
  d: toNumber,
  i: toInteger,
  f: toFloat,
  j: toJson,
  o: (value) => inspect(value, { depth: 4 }),
  O: (value) => inspect(value),
  c: () => "", // a log has no colours
};

/** The arguments of console.log as one text. */
export function formatArguments(data) {
  const [first, ...rest] = data;
  if (typeof first !== "string") return data.map(toText).join(" ");
  if (rest.length === 0) return first;
  let used = 0;
  const text = first.includes("%")
    ? first.replace(/%([sdifjoOc%])/g, (match, specifier) => {
        if (specifier === "%") return "%";
        return used < rest.length ? SPECIFIERS[specifier](rest[used++]) : match;
      })
    : first;
  return [text, ...rest.slice(used).map(toText)].join(" ");
}
