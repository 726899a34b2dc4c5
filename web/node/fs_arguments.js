// Checks the arguments of node:fs, with the errors of Node.
import { Buffer } from "./buffer.js";
import { constants, FLAGS } from "./fs_constants.js";
import { invalidArgument, invalidValue, outOfRange, requireFunction } from "./errors.js";
import { fileURLToPath } from "./url.js";
import { isDate } from "./util_types.js";

const VIEW = "an instance of Buffer, TypedArray, or DataView";
const MOST_INT32 = 2 ** 31 - 1;
const MOST_UINT32 = 2 ** 32 - 1;

export function requireInteger(value, name, least = Number.MIN_SAFE_INTEGER, most = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < least || value > most) throw outOfRange(name, `>= ${least} && <= ${most}`, value);
  return value;
}

export function requireUint32(value, name) {
  return requireInteger(value, name, 0, MOST_UINT32);
}

export function requireBoolean(value, name) {
  if (typeof value !== "boolean") throw invalidArgument(name, "of type boolean", value);
  return value;
}

export function requireObject(value, name) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidArgument(name, "of type object", value);
  return value;
}

/** A path as text: a string, the bytes of one, or a file: URL. */
export function pathOf(path, name = "path") {
  const isUrl = typeof path === "object" && path !== null && typeof path.href === "string" && typeof path.protocol === "string" && path.auth === undefined;
  const given = isUrl ? fileURLToPath(path) : path;
  if (typeof given !== "string" && !(given instanceof Uint8Array)) {
    throw invalidArgument(name, "of type string or an instance of Buffer or URL", path);
  }
  const text = typeof given === "string" ? given : Buffer.from(given.buffer, given.byteOffset, given.byteLength).toString();
  if (text.includes("\0")) throw invalidValue(name, given, "must be a string, Uint8Array, or URL without null bytes");
  return text;
}

export function descriptorOf(fd, name = "fd") {
  return requireInteger(fd, name, 0, MOST_INT32) || 0;
}

/** A path or a descriptor. */
export const pathOrDescriptor = (path) => (Number.isInteger(path) && path >= 0 && path <= MOST_INT32 ? path : pathOf(path));

export function encodingOf(encoding) {
  if (encoding && encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw invalidValue("encoding", encoding, "is invalid encoding");
  return encoding;
}

/** The options of a function that takes an encoding or an object. */
export function optionsOf(options, defaults = {}) {
  if (options === undefined || options === null || typeof options === "function") return defaults;
  const given = typeof options === "string" ? { encoding: options } : options;
  if (typeof given !== "object") throw invalidArgument("options", "of type string or an instance of Object", options);
  encodingOf(given.encoding);
  return { ...defaults, ...given };
}

export function flagsOf(flags) {
  const name = "flags";
  if (typeof flags === "number") return requireInteger(flags, name, -(2 ** 31), MOST_INT32);
  if (flags === undefined || flags === null) return constants.O_RDONLY;
  if (FLAGS[flags] === undefined) throw invalidValue(name, flags);
  return FLAGS[flags];
}

export function modeOf(mode, name = "mode", fallback = 0o666) {
  if (mode === undefined || mode === null) return fallback;
  if (typeof mode !== "string") return requireUint32(mode, name);
  if (!/^[0-7]+$/.test(mode)) throw invalidValue(name, mode, "must be a 32-bit unsigned integer or an octal string");
  return Number.parseInt(mode, 8);
}

export function accessMode(mode) {
  if (mode === undefined || mode === null) return constants.F_OK;
  return requireInteger(typeof mode === "number" ? Math.trunc(mode) : mode, "mode", 0, 7);
}

/** Seconds of a time as milliseconds. */
export function timeOf(time, name = "time") {
  if (typeof time === "string" && `${Number(time)}` === time) return Number(time) * 1000;
  if (Number.isFinite(time)) return time < 0 ? Date.now() : time * 1000;
  if (isDate(time)) return time.getTime();
  throw invalidArgument(name, "an instance of Date or Time in seconds", time);
}

/** A position in a file: null and -1 mean the current one. */
export function positionOf(position) {
  if (position === undefined || position === null || position === -1 || position === -1n) return null;
  if (typeof position === "bigint") {
    if (position < 0n || position > BigInt(Number.MAX_SAFE_INTEGER)) throw outOfRange("position", `>= -1 && <= ${Number.MAX_SAFE_INTEGER}`, position);
    return Number(position);
  }
  if (typeof position !== "number") throw invalidArgument("position", "of type integer or bigint or null", position);
  return requireInteger(position, "position", -1);
}

export function bytesOf(view, name = "buffer") {
  if (!ArrayBuffer.isView(view)) throw invalidArgument(name, VIEW, view);
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** The part of a buffer that is read into or written from. */
export function partOf(bytes, offset, length) {
  const start = offset === undefined || offset === null ? 0 : requireInteger(offset, "offset", 0);
  if (start > bytes.length) throw outOfRange("offset", `<= ${bytes.length}`, start);
  const size = length === undefined || length === null ? bytes.length - start : length;
  if (typeof size !== "number") throw invalidArgument("length", "of type number", size);
  if (size < 0) throw outOfRange("length", ">= 0", size);
  if (size > bytes.length - start) throw outOfRange("length", `<= ${bytes.length - start}`, size);
  return bytes.subarray(start, start + Math.trunc(size));
}

/** Data of writeFile and write: text in an encoding, or bytes. */
export function dataOf(data, encoding, name = "data") {
  if (typeof data === "string") return Buffer.from(data, encoding ?? "utf8");
  if (!ArrayBuffer.isView(data)) throw invalidArgument(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
  return bytesOf(data, name);
}

export function viewsOf(views) {
  if (!Array.isArray(views)) throw invalidArgument("buffers", "an instance of ArrayBufferView[]", views);
  return views.map((view) => {
    if (!ArrayBuffer.isView(view)) throw invalidArgument("buffers", "an instance of ArrayBufferView[]", views);
    return bytesOf(view);
  });
}

/** Text, or bytes if the encoding is "buffer". */
export const named = (text, encoding) => (encoding === "buffer" ? Buffer.from(text) : encoding && encoding !== "utf8" ? Buffer.from(text).toString(encoding) : text);

export { requireFunction };
