// https://nodejs.org/api/crypto.html: random values and constant-time comparison.
import { native } from "../internal/native.js";
import { queueMicrotask } from "../timers.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, outOfRange, requireFunction, requireNumber } from "./errors.js";

const PIECE = 65536;
const MOST = 2 ** 31 - 1;

function fill(bytes) {
  for (let at = 0; at < bytes.length; at += PIECE) native.fillRandom(bytes.subarray(at, at + PIECE));
}

const isBuffer = (value) => ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
const bytesOf = (buffer) => (ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer));

function requireBuffer(buffer) {
  if (!isBuffer(buffer)) throw invalidArgument("buf", "an instance of ArrayBuffer or ArrayBufferView", buffer);
}

/** The bytes from `offset`, in elements of the array, for `size` elements. */
function partOf(buffer, offset = 0, size = undefined) {
  const unit = buffer.BYTES_PER_ELEMENT ?? 1;
  const { byteLength } = buffer;
  requireNumber(offset, "offset");
  const start = offset * unit;
  const most = Math.min(byteLength, MOST);
  if (Number.isNaN(start) || start > most || start < 0) throw outOfRange("offset", `>= 0 && <= ${most}`, start);
  let length = byteLength - start;
  if (size !== undefined) {
    requireNumber(size, "size");
    length = size * unit;
    if (Number.isNaN(length) || length > MOST || length < 0) throw outOfRange("size", `>= 0 && <= ${MOST}`, length);
    if (length + start > byteLength) throw outOfRange("size + offset", `<= ${byteLength}`, length + start);
  }
  return bytesOf(buffer).subarray(start, start + length);
}

export function randomBytes(size, callback = undefined) {
  requireNumber(size, "size");
  if (!(size >= 0 && size <= MOST)) throw outOfRange("size", `>= 0 && <= ${MOST}`, size);
  const bytes = Buffer.alloc(size);
  fill(bytes);
  if (callback === undefined) return bytes;
  requireFunction(callback, "callback");
  queueMicrotask(() => callback(null, bytes));
  return undefined;
}

export function randomFillSync(buffer, offset = undefined, size = undefined) {
  requireBuffer(buffer);
  fill(partOf(buffer, offset, size));
  return buffer;
}

export function randomFill(buffer, offset, size, callback) {
  requireBuffer(buffer);
  let [start, length, done] = [offset, size, callback];
  if (typeof offset === "function") [start, length, done] = [undefined, undefined, offset];
  else if (typeof size === "function") [length, done] = [undefined, size];
  requireFunction(done, "callback");
  fill(partOf(buffer, start, length));
  queueMicrotask(() => done(null, buffer));
}

/** https://nodejs.org/api/crypto.html#cryptorandomintmin-max-callback: uniformly distributed. */
export function randomInt(...given) {
  // Without a maximum the only number is the maximum.
  const hasOne = given[1] === undefined || typeof given[1] === "function";
  const [min, max, callback] = hasOne ? [0, given[0], given[1]] : given;
  if (callback !== undefined) requireFunction(callback, "callback");
  for (const [name, value] of [["min", min], ["max", max]]) {
    if (!Number.isSafeInteger(value)) throw invalidArgument(name, "a safe integer", value);
  }
  const range = max - min;
  if (!(range > 0)) throw outOfRange("max", `greater than the value of "min" (${min})`, max);
  if (range > 2 ** 48 - 1) throw outOfRange("max - min", "<= 281474976710655", range);
  const limit = 2 ** 48 - (2 ** 48 % range);
  let number;
  do number = randomBytes(6).readUIntBE(0, 6);
  while (number >= limit);
  const result = min + (number % range);
  if (callback === undefined) return result;
  queueMicrotask(() => callback(null, result));
  return undefined;
}

/** https://nodejs.org/api/crypto.html#cryptorandomuuidoptions */
export function randomUUID(options = undefined) {
  if (options !== undefined) {
    if (typeof options !== "object" || options === null || Array.isArray(options)) throw invalidArgument("options", "of type object", options);
    const { disableEntropyCache = false } = options;
    if (typeof disableEntropyCache !== "boolean") throw invalidArgument("options.disableEntropyCache", "of type boolean", disableEntropyCache);
  }
  return native.randomUUID();
}

function requireBytes(value, name) {
  if (isBuffer(value)) return bytesOf(value);
  throw codedError(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be an instance of ArrayBuffer, Buffer, TypedArray, or DataView.`);
}

export function timingSafeEqual(buf1, buf2) {
  const [left, right] = [requireBytes(buf1, "buf1"), requireBytes(buf2, "buf2")];
  if (left.length !== right.length) throw codedError(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
  return native.equalBytes(left, right);
}
