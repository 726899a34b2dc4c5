// https://nodejs.org/api/util.html#utilstyletextformat-text-options, and the colours of inspect().
import { invalidArgument, invalidValue, requireString } from "./errors.js";
import { requireBoolean } from "./validate.js";

const CODES = {
  reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28],
  strikethrough: [9, 29], doubleunderline: [21, 24],
};

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const capital = (name) => name[0].toUpperCase() + name.slice(1);

export const colors = { __proto__: null, ...CODES };
COLORS.forEach((name, i) => (colors[name] = [30 + i, 39]));
COLORS.forEach((name, i) => (colors[`bg${capital(name)}`] = [40 + i, 49]));
Object.assign(colors, { framed: [51, 54], overlined: [53, 55], gray: [90, 39] });
COLORS.slice(1).forEach((name, i) => (colors[`${name}Bright`] = [91 + i, 39]));
colors.bgGray = [100, 49];
COLORS.slice(1).forEach((name, i) => (colors[`bg${capital(name)}Bright`] = [101 + i, 49]));

for (const [alias, name] of Object.entries({
  grey: "gray", blackBright: "gray", bgGrey: "bgGray", bgBlackBright: "bgGray", faint: "dim", crossedout: "strikethrough",
  strikeThrough: "strikethrough", crossedOut: "strikethrough", conceal: "hidden", swapColors: "inverse", swapcolors: "inverse",
  doubleUnderline: "doubleunderline",
})) {
  Object.defineProperty(colors, alias, {
    get() {
      return this[name];
    },
    set(value) {
      this[name] = value;
    },
    configurable: true,
    enumerable: false,
  });
}

export const styles = {
  __proto__: null,
  special: "cyan", number: "yellow", bigint: "yellow", boolean: "yellow", undefined: "grey", null: "bold", string: "green",
  symbol: "green", date: "magenta", regexp: "red", module: "underline",
};

/** Text in the colour that `util.inspect.styles` names for a style. */
export function paint(text, style) {
  const [start, end] = colors[styles[style]] ?? [];
  return start === undefined ? text : `\x1b[${start}m${text}\x1b[${end}m`;
}

const isStream = (value) => typeof value === "object" && value !== null && (typeof value.write === "function" || typeof value.getReader === "function" || typeof value.getWriter === "function");

/** Text in colours if it is not for the log, which has none: with `validateStream: false`, or a stream that is a terminal. */
export function styleText(format, text, { validateStream = true, stream = undefined } = {}) {
  requireString(text, "text");
  if (validateStream) requireBoolean(validateStream, "options.validateStream");
  if (validateStream && stream !== undefined && !isStream(stream)) {
    throw invalidArgument("stream", "an instance of ReadableStream, WritableStream, or Stream", stream);
  }
  let before = "";
  let after = "";
  for (const name of Array.isArray(format) ? format : [format]) {
    if (name === "none") continue;
    const code = typeof name === "string" ? colors[name] : undefined;
    if (code === undefined) {
      const names = Object.getOwnPropertyNames(colors).map((each) => `'${each}'`);
      throw invalidValue("format", name, `must be one of: ${names.join(", ")}`);
    }
    before += `\x1b[${code[0]}m`;
    after = `\x1b[${code[1]}m${after}`;
  }
  return !validateStream || stream?.isTTY ? before + text + after : text;
}
