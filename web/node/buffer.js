// https://nodejs.org/api/buffer.html
import { atob, btoa } from "../encoding/base64.js";
import { Blob } from "../file/blob.js";
import { File } from "../file/file.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { isArrayBuffer } from "../internal/webidl.js";
import { decode, encode, encodedLength, encodingName, requireEncoding, requireNamed } from "./buffer_encodings.js";
import { addNumberMethods } from "./buffer_numbers.js";
import { findIn } from "./buffer_search.js";
import { codedError, describe, invalidArgument, invalidValue, outOfRange, requireNumber } from "./errors.js";
import { requireArray, requireInteger } from "./validate.js";

export const kMaxLength = 2 ** 30;
export const kStringMaxLength = 2 ** 29 - 24;
export const constants = { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength };
export let INSPECT_MAX_BYTES = 50;

const counts = new Uint32Array(2); // units read and bytes written by native.encodeInto
const customInspect = Symbol.for("nodejs.util.inspect.custom");

function requireSize(size, name = "size") {
  if (typeof size !== "number") throw invalidArgument(name, "of type number", size);
  if (!(size >= 0 && size <= kMaxLength)) throw outOfRange(name, `>= 0 && <= ${kMaxLength}`, size);
}

function outside(name) {
  return codedError(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", `"${name}" is outside of buffer bounds`);
}

function isBytes(value) {
  return ArrayBuffer.isView(value) && value instanceof Uint8Array;
}

function requireBytes(value, name) {
  if (!isBytes(value)) throw invalidArgument(name, "an instance of Buffer or Uint8Array", value);
}

/** A Buffer over the same memory. */
function asBuffer(bytes) {
  return new FastBuffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// A position within 0 … length; a negative one counts from the end.
function clamp(value, length, fallback) {
  if (value === undefined) return fallback;
  const integer = Math.trunc(Number(value)) || 0;
  return integer < 0 ? Math.max(0, length + integer) : Math.min(integer, length);
}

// Creates the instances. Its prototype is that of Buffer, which can be called without `new`.
class FastBuffer extends Uint8Array {}

/** https://nodejs.org/api/buffer.html#class-buffer. The constructor is deprecated but still used. */
export function Buffer(value, encodingOrOffset, length) {
  if (typeof value === "number") {
    if (typeof encodingOrOffset === "string") throw invalidArgument("string", "of type string", value);
    return Buffer.alloc(value);
  }
  return Buffer.from(value, encodingOrOffset, length);
}

Object.setPrototypeOf(Buffer, Uint8Array);
Object.defineProperty(Buffer, "name", { value: "Buffer", configurable: true }); // the bundler renames it
Buffer.prototype = FastBuffer.prototype;
Object.defineProperty(Buffer.prototype, "constructor", { value: Buffer, writable: true, configurable: true });
Object.defineProperty(Buffer, Symbol.species, { get: () => FastBuffer, configurable: true });

function fromObject(value) {
  if (isBytes(value) || Array.isArray(value)) return new FastBuffer(value);
  if (ArrayBuffer.isView(value)) return new FastBuffer(value);
  if (value.type === "Buffer" && Array.isArray(value.data)) return new FastBuffer(value.data);
  if (typeof value.length === "number") return new FastBuffer(Array.from({ length: value.length }, (_, i) => value[i]));
  return undefined;
}

const statics = {
  /** https://nodejs.org/api/buffer.html#static-method-bufferfromstring-encoding and the other overloads. */
  from(value, encodingOrOffset = undefined, length = undefined) {
    if (typeof value === "string") return asBuffer(encode(value, requireEncoding(encodingOrOffset)));
    if (typeof value === "object" && value !== null) {
      if (isArrayBuffer(value)) {
        const offset = Math.trunc(Number(encodingOrOffset ?? 0)) || 0;
        const rest = value.byteLength - offset;
        if (rest < 0) throw outside("offset");
        if (length !== undefined && Number(length) > rest) {
          throw outside("length");
        }
        // Without a length it follows a buffer that is resized.
        return new FastBuffer(value, offset, length === undefined ? undefined : Math.max(0, Number(length) || 0));
      }
      const primitive = value.valueOf?.();
      if (primitive !== value && primitive !== null && primitive !== undefined) {
        return Buffer.from(primitive, encodingOrOffset, length);
      }
      const made = fromObject(value);
      if (made !== undefined) return made;
      const text = value[Symbol.toPrimitive]?.("string");
      if (typeof text === "string") return Buffer.from(text, encodingOrOffset);
    }
    throw codedError(
      TypeError,
      "ERR_INVALID_ARG_TYPE",
      `The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object. Received ${describe(value)}`,
    );
  },

  alloc(size, fill = undefined, encoding = undefined) {
    requireSize(size);
    const buffer = new FastBuffer(size);
    return fill === undefined || fill === 0 || size === 0 ? buffer : buffer.fill(fill, encoding);
  },

  allocUnsafe(size) {
    requireSize(size);
    return new FastBuffer(size);
  },

  allocUnsafeSlow(size) {
    requireSize(size);
    return new FastBuffer(size);
  },

  byteLength(value, encoding = undefined) {
    if (typeof value === "string") return encodedLength(value, encodingName(encoding) ?? "utf8");
    if (ArrayBuffer.isView(value) || isArrayBuffer(value)) return value.byteLength;
    throw invalidArgument("string", "of type string or an instance of Buffer or ArrayBuffer", value);
  },

  compare(a, b) {
    requireBytes(a, "buf1");
    requireBytes(b, "buf2");
    const shorter = Math.min(a.length, b.length);
    for (let i = 0; i < shorter; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
    return Math.sign(a.length - b.length);
  },

  concat(list, length = undefined) {
    requireArray(list, "list");
    if (list.length === 0) return new FastBuffer();
    list.forEach((item, i) => requireBytes(item, `list[${i}]`));
    const total = length === undefined ? list.reduce((sum, item) => sum + item.length, 0) : length;
    requireInteger(total, "length", 0);
    requireSize(total, "length");
    const result = new FastBuffer(total);
    let at = 0;
    for (const item of list) {
      if (at >= total) break;
      result.set(item.subarray(0, total - at), at);
      at += item.length;
    }
    return result;
  },

  copyBytesFrom(view, offset = 0, length = undefined) {
    if (!ArrayBuffer.isView(view)) throw invalidArgument("view", "an instance of TypedArray", view);
    const part = view.subarray(offset, length === undefined ? undefined : offset + length);
    return new FastBuffer(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  },

  isBuffer: (value) => value instanceof Buffer,
  isEncoding: (name) => typeof name === "string" && name !== "" && encodingName(name) !== undefined,
};

const methods = {
  toString(encoding = undefined, start = undefined, end = undefined) {
    const from = clamp(Math.max(0, Number(start) || 0), this.length, 0);
    const to = end === undefined ? this.length : Math.min(Math.max(0, Math.trunc(Number(end)) || 0), this.length);
    if (to - from > kStringMaxLength) {
      throw codedError(Error, "ERR_STRING_TOO_LONG", `Cannot create a string longer than 0x${kStringMaxLength.toString(16)} characters`);
    }
    return to <= from ? "" : decode(this.subarray(from, to), requireNamed(encoding));
  },

  toLocaleString(encoding = undefined, start = undefined, end = undefined) {
    return this.toString(encoding, start, end);
  },

  toJSON() {
    return { type: "Buffer", data: Array.from(this) };
  },

  equals(other) {
    requireBytes(other, "otherBuffer");
    return this.length === other.length && Buffer.compare(this, other) === 0;
  },

  compare(target, targetStart = 0, targetEnd = target?.length, sourceStart = 0, sourceEnd = this.length) {
    requireBytes(target, "target");
    requireInteger(targetStart, "targetStart", 0);
    requireInteger(targetEnd, "targetEnd", 0, target.length);
    requireInteger(sourceStart, "sourceStart", 0);
    requireInteger(sourceEnd, "sourceEnd", 0, this.length);
    if (sourceStart >= sourceEnd) return targetStart >= targetEnd ? 0 : -1;
    if (targetStart >= targetEnd) return 1;
    return Buffer.compare(this.subarray(sourceStart, sourceEnd), target.subarray(targetStart, targetEnd));
  },

  copy(target, targetStart = 0, sourceStart = 0, sourceEnd = this.length) {
    if (!ArrayBuffer.isView(target)) throw invalidArgument("target", "an instance of Buffer or Uint8Array", target);
    const [to, from, end] = [targetStart, sourceStart, sourceEnd].map((value) => (Number.isFinite(Number(value)) ? Math.floor(value) : 0));
    if (to < 0) throw outOfRange("targetStart", ">= 0", to);
    if (from < 0 || from > this.length) throw outOfRange("sourceStart", `>= 0 && <= ${this.length}`, from);
    if (end < 0) throw outOfRange("sourceEnd", ">= 0", end);
    if (to >= target.byteLength || from >= end) return 0;
    const part = this.subarray(from, Math.min(end, from + target.byteLength - to));
    new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(part, to);
    return part.length;
  },

  /** Like subarray: shares the memory. */
  slice(start = undefined, end = undefined) {
    return this.subarray(start, end);
  },

  write(text, offset = undefined, length = undefined, encoding = undefined) {
    if (offset === undefined) return writeText(this, text, 0, this.length, "utf8");
    let [at, room, name] = [offset, length, encoding];
    if (length === undefined && typeof offset === "string") {
      [at, room, name] = [0, this.length, offset];
    } else {
      requireInteger(offset, "offset", 0, this.length);
      if (typeof length === "string") [room, name] = [undefined, length];
      if (room !== undefined) requireInteger(room, "length", 0, this.length);
      room = Math.min(room ?? Infinity, this.length - at);
    }
    return writeText(this, text, at, room, requireEncoding(name || "utf8"));
  },

  fill(value, offset = undefined, end = undefined, encoding = undefined) {
    if (typeof offset === "string") [offset, end, encoding] = [undefined, undefined, offset];
    else if (typeof end === "string") [end, encoding] = [undefined, end];
    const from = offset ?? 0;
    const to = end ?? this.length;
    if (from < 0) throw outOfRange("offset", `>= 0 && <= ${Number.MAX_SAFE_INTEGER}`, from);
    if (from > this.length) throw outOfRange("offset", `>= 0 && <= ${this.length}`, from);
    if (to < 0 || to > this.length) throw outOfRange("end", `>= 0 && <= ${this.length}`, to);
    if (typeof value === "string" || isBytes(value)) {
      const pattern = typeof value === "string" ? encode(value, requireEncoding(encoding)) : value;
      if (pattern.length === 0) {
        if (typeof value === "string" && value === "") return Uint8Array.prototype.fill.call(this, 0, from, to);
        throw invalidValue("value", value);
      }
      for (let i = from; i < to; i++) this[i] = pattern[(i - from) % pattern.length];
      return this;
    }
    return Uint8Array.prototype.fill.call(this, Number(value) & 255, from, to);
  },

  indexOf(value, byteOffset = undefined, encoding = undefined) {
    return findIn(this, value, byteOffset, encoding, false);
  },

  lastIndexOf(value, byteOffset = undefined, encoding = undefined) {
    return findIn(this, value, byteOffset, encoding, true);
  },

  includes(value, byteOffset = undefined, encoding = undefined) {
    return this.indexOf(value, byteOffset, encoding) !== -1;
  },

  swap16() {
    return swap(this, 2);
  },

  swap32() {
    return swap(this, 4);
  },

  swap64() {
    return swap(this, 8);
  },

  [customInspect](depth, context) {
    const shown = decode(this.subarray(0, INSPECT_MAX_BYTES), "hex").replace(/(..)(?=.)/g, "$1 ");
    const rest = this.length - INSPECT_MAX_BYTES;
    const more = rest > 0 ? ` ... ${rest} more byte${rest === 1 ? "" : "s"}` : "";
    return `<${nameOf(this)} ${shown}${more}${propertiesOf(this, context)}>`;
  },
};

function nameOf(buffer) {
  try {
    const { constructor } = buffer;
    return typeof constructor === "function" && Object.hasOwn(constructor, "name") ? constructor.name : "Buffer";
  } catch {
    return "Buffer";
  }
}

// What a program has put on a Buffer, as `, name: value`.
function propertiesOf(buffer, context) {
  if (context === undefined) return "";
  const extra = {};
  for (const key of Reflect.ownKeys(buffer)) {
    if (typeof key === "string" && /^\d+$/.test(key)) continue;
    if (Object.getOwnPropertyDescriptor(buffer, key).enumerable) extra[key] = buffer[key];
  }
  if (Reflect.ownKeys(extra).length === 0) return "";
  const text = lazy("node/util_module.js").inspect(extra, { breakLength: Infinity, compact: true });
  return `${buffer.length > 0 ? ", " : ""}${text.slice(2, -2)}`;
}

// A character that does not fit completely is not written.
function writeText(buffer, text, at, room, encoding) {
  if (typeof text !== "string") throw invalidArgument("argument", "of type string", text);
  if (encoding === "utf8") {
    native.encodeInto(text, buffer.subarray(at, at + room), counts);
    return counts[1];
  }
  const bytes = encode(text, encoding).subarray(0, encoding === "utf16le" ? room & ~1 : room);
  buffer.set(bytes, at);
  return bytes.length;
}

function swap(buffer, size) {
  if (buffer.length % size !== 0) {
    throw codedError(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${size * 8}-bits`);
  }
  for (let i = 0; i < buffer.length; i += size) buffer.subarray(i, i + size).reverse();
  return buffer;
}

function define(target, functions) {
  for (const key of Reflect.ownKeys(functions)) {
    Object.defineProperty(target, key, { value: functions[key], writable: true, enumerable: true, configurable: true });
  }
}

define(Buffer, statics);
define(Buffer.prototype, methods);
addNumberMethods(Buffer.prototype);
// Undocumented in Node but used by packages: `latin1Slice(start, end)`, `utf8Write(text, offset, length)` …
for (const encoding of ["ascii", "base64", "base64url", "hex", "latin1", "ucs2", "utf8"]) {
  define(Buffer.prototype, {
    [`${encoding}Slice`](start, end) {
      return this.toString(encoding, start, end);
    },
    [`${encoding}Write`](text, offset = 0, length = this.length - offset) {
      if (typeof text !== "string") throw invalidArgument("argument", "of type string", text);
      if (offset < 0 || offset > this.length) throw outside("offset");
      if (length < 0 || length > this.length - offset) throw outside("length");
      return writeText(this, text, offset, length, requireEncoding(encoding));
    },
  });
}
Object.defineProperty(Buffer, "poolSize", { value: 8192, writable: true, configurable: true });
for (const [name, key] of [["parent", "buffer"], ["offset", "byteOffset"]]) {
  Object.defineProperty(Buffer.prototype, name, {
    get() {
      return this instanceof Buffer ? this[key] : undefined;
    },
    enumerable: true,
    configurable: true,
  });
}

export const SlowBuffer = Object.assign((size) => Buffer.allocUnsafeSlow(size), { prototype: Buffer.prototype });

function bytesToCheck(input) {
  const isView = ArrayBuffer.isView(input) && !(input instanceof DataView);
  if (!isView && !isArrayBuffer(input)) throw invalidArgument("input", "an instance of ArrayBuffer, Buffer, or TypedArray", input);
  const buffer = isView ? input.buffer : input;
  if (buffer.detached) throw codedError(Error, "ERR_INVALID_STATE", "Invalid state: Cannot validate on a detached buffer");
  return new Uint8Array(buffer, isView ? input.byteOffset : 0, input.byteLength);
}

/** https://nodejs.org/api/buffer.html#bufferisutf8input */
export function isUtf8(input) {
  const bytes = bytesToCheck(input);
  try {
    native.decodeUtf8(bytes, true, true);
    return true;
  } catch {
    return false;
  }
}

export function isAscii(input) {
  return bytesToCheck(input).every((byte) => byte < 128);
}

export function transcode(source, fromEncoding, toEncoding) {
  requireBytes(source, "source");
  const to = requireEncoding(toEncoding);
  const text = decode(source, requireEncoding(fromEncoding));
  // Characters that the target encoding lacks become question marks.
  const known = to === "latin1" ? text.replace(/[^\0-\xff]/gu, "?") : to === "ascii" ? text.replace(/[^\0-\x7f]/gu, "?") : text;
  return asBuffer(encode(known, to));
}

/** For the module's default export, where the number can be changed. */
export function setInspectMaxBytes(count) {
  requireNumber(count, "INSPECT_MAX_BYTES");
  if (!(count >= 0)) throw outOfRange("INSPECT_MAX_BYTES", ">= 0", count);
  INSPECT_MAX_BYTES = count;
}

export { atob, Blob, btoa, File };
