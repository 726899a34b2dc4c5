// https://console.spec.whatwg.org/#formatter
import { inspect } from "./internal/inspect.js";

function toText(value) {
  return typeof value === "string" ? value : inspect(value);
}

function toInteger(value) {
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "symbol" ? "NaN" : `${parseInt(value, 10)}`;
}

function toNumber(value) {
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "symbol" || typeof value === "object" ? "NaN" : `${Number(value)}`;
}

function toJson(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return "[Circular]";
  }
}

// What %s shows: strings as they are, objects on a short leash.
function toStringText(value) {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "object" && value !== null) return inspect(value, { depth: 0 });
  return typeof value === "function" ? inspect(value, { depth: 0 }) : Object.is(value, -0) ? "-0" : String(value);
}

const SPECIFIERS = {
  s: toStringText,
  d: toNumber,
  i: toInteger,
  f: (value) => (typeof value === "symbol" ? "NaN" : `${parseFloat(value)}`),
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
