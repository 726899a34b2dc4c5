// Removes from the language what reads a running clock or waits for other threads.
//
// A clock that moves while code runs can measure what the code does, down to what a neighbour on the same processor left in its
// caches (Spectre). ECMAScript reads the time in two places: Date, and Intl.DateTimeFormat without a date to format. Both are
// replaced here. The engine moves the clock between turns of the event loop.
import { wallClock } from "./internal/clock.js";
import { lazy } from "./internal/lazy.js";
import { addNewerLanguage } from "./newer_language.js";

const { construct } = Reflect;
const OriginalDate = Date;
const dateToString = Date.prototype.toString;

function define(object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });
}

/** https://tc39.es/ecma262/#sec-date-constructor */
function FrozenDate(...args) {
  if (new.target === undefined) return dateToString.call(new OriginalDate(wallClock()));
  if (args.length === 0) args[0] = wallClock();
  return construct(OriginalDate, args, new.target);
}

function freezeDate(scope) {
  Object.defineProperties(FrozenDate, {
    name: { value: "Date", configurable: true },
    length: { value: OriginalDate.length, configurable: true },
    prototype: { value: OriginalDate.prototype, writable: false },
  });
  define(FrozenDate, "parse", OriginalDate.parse);
  define(FrozenDate, "UTC", OriginalDate.UTC);
  define(FrozenDate, "now", { now: () => wallClock() }.now);
  define(OriginalDate.prototype, "constructor", FrozenDate);
  define(scope, "Date", FrozenDate);
}

/** https://tc39.es/ecma402/#sec-intl.datetimeformat.prototype.format: without a date it formats the current time. */
function freezeFormats(prototype) {
  const { get: originalFormat } = Object.getOwnPropertyDescriptor(prototype, "format");
  const originalToParts = prototype.formatToParts;
  const bound = new WeakMap(); // a formatter always returns the same function
  const { format } = Object.getOwnPropertyDescriptors({
    get format() {
      const inner = originalFormat.call(this);
      if (!bound.has(inner)) bound.set(inner, { "": (date) => inner(date === undefined ? wallClock() : date) }[""]);
      return bound.get(inner);
    },
  });
  Object.defineProperty(prototype, "format", { ...format, enumerable: false });
  const { formatToParts } = {
    formatToParts(date) {
      return originalToParts.call(this, date === undefined ? wallClock() : date);
    },
  };
  define(prototype, "formatToParts", formatToParts);
}

// https://tc39.es/proposal-arraybuffer-base64/spec/: part of ECMAScript 2026, but not yet of this V8.
function addBytesText() {
  if ("fromBase64" in Uint8Array) return;
  const text = () => lazy("encoding/bytes_text.js");
  const statics = {
    fromBase64: (string, options = undefined) => text().fromBase64(string, options),
    fromHex: (string) => text().fromHex(string),
  };
  const methods = {
    setFromBase64(string, options = undefined) {
      text().requireBytes(this, "setFromBase64");
      return text().setFromBase64(this, string, options);
    },
    setFromHex(string) {
      text().requireBytes(this, "setFromHex");
      return text().setFromHex(this, string);
    },
    toBase64(options = undefined) {
      text().requireBytes(this, "toBase64");
      return text().toBase64(this, options);
    },
    toHex() {
      text().requireBytes(this, "toHex");
      return text().toHex(this);
    },
  };
  for (const [name, value] of Object.entries(statics)) define(Uint8Array, name, value);
  for (const [name, value] of Object.entries(methods)) define(Uint8Array.prototype, name, value);
}

/** Called once, while the snapshot is made. SharedArrayBuffer does not exist yet: the engine removes it. */
export function tameLanguage(scope) {
  freezeDate(scope);
  freezeFormats(Intl.DateTimeFormat.prototype);
  addBytesText();
  addNewerLanguage(define);
  delete Atomics.waitAsync; // V8 itself refuses Atomics.wait
}
