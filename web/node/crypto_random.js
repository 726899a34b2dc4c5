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

function viewOf(buffer, offset, size) {
  const isView = ArrayBuffer.isView(buffer);
  if (!isView && !(buffer instanceof ArrayBuffer)) throw invalidArgument("buf", "an instance of ArrayBuffer, Buffer, TypedArray or DataView", buffer);
  const unit = buffer.BYTES_PER_ELEMENT ?? 1;
  const start = (offset ?? 0) * unit;
  const length = size === undefined ? buffer.byteLength - start : size * unit;
  if (start < 0 || length < 0 || start + length > buffer.byteLength) throw outOfRange("size", `<= ${buffer.byteLength - start}`, size);
  return isView ? new Uint8Array(buffer.buffer, buffer.byteOffset + start, length) : new Uint8Array(buffer, start, length);
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
  fill(viewOf(buffer, offset, size));
  return buffer;
}

export function randomFill(buffer, ...rest) {
  const callback = rest.pop();
  requireFunction(callback, "callback");
  randomFillSync(buffer, ...rest);
  queueMicrotask(() => callback(null, buffer));
}

/** https://nodejs.org/api/crypto.html#cryptorandomintmin-max-callback: uniformly distributed. */
export function randomInt(...given) {
  const callback = typeof given.at(-1) === "function" ? given.pop() : undefined;
  const [min, max] = given.length < 2 ? [0, given[0]] : given;
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

export function randomUUID() {
  return native.randomUUID();
}

export function timingSafeEqual(a, b) {
  const [left, right] = [viewOf(a), viewOf(b)];
  if (left.length !== right.length) throw codedError(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
  return native.equalBytes(left, right);
}
