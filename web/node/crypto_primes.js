// https://nodejs.org/api/crypto.html#cryptogenerateprimesize-options-callback and #cryptocheckprimecandidate-options-callback
import { native } from "../internal/native.js";
import { codedError, invalidArgument, outOfRange, requireFunction, requireNumber } from "./errors.js";

function bytesOf(value, name) {
  if (typeof value === "bigint") {
    if (value < 0n) throw outOfRange(name, ">= 0", value);
    const hex = value.toString(16);
    return Uint8Array.fromHex(hex.length % 2 === 1 ? `0${hex}` : hex);
  }
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw invalidArgument(name, "of type bigint or an instance of ArrayBuffer, TypedArray, Buffer, or DataView", value);
}

const toBigInt = (buffer) => BigInt(`0x${new Uint8Array(buffer).toHex() || "0"}`);

function prepare(size, options = {}) {
  requireNumber(size, "size");
  if (!Number.isInteger(size)) throw outOfRange("size", "an integer", size);
  if (size < 1 || size > 2 ** 31 - 1) throw outOfRange("size", ">= 1 && <= 2147483647", size);
  if (typeof options !== "object" || options === null) throw invalidArgument("options", "of type object", options);
  const { add, rem, safe = false, bigint = false } = options;
  for (const [name, value] of Object.entries({ safe, bigint })) {
    if (typeof value !== "boolean") throw invalidArgument(`options.${name}`, "of type boolean", value);
  }
  const step = add === undefined ? new Uint8Array(0) : bytesOf(add, "options.add");
  const rest = rem === undefined ? new Uint8Array(0) : bytesOf(rem, "options.rem");
  return {
    run: () => native.findPrime(size, safe, step, rest),
    finish(prime) {
      if (prime === undefined || prime === null) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "No prime was found within the CPU limit. Primes have 2 to 4,096 bits");
      return bigint ? toBigInt(prime) : prime;
    },
  };
}

export function generatePrimeSync(size, options = undefined) {
  const { run, finish } = prepare(size, options);
  return finish(native.onTheSpot(run));
}

function deliver(promise, finish, callback) {
  Promise.resolve(promise).then(finish).then((result) => callback(null, result), (error) => callback(error));
}

export function generatePrime(size, options, callback = undefined) {
  const [given, done] = typeof options === "function" ? [undefined, options] : [options, callback];
  requireFunction(done, "callback");
  const { run, finish } = prepare(size, given);
  deliver(run(), finish, done);
}

function prepareCheck(candidate, options = {}) {
  const bytes = bytesOf(candidate, "candidate");
  if (typeof options !== "object" || options === null) throw invalidArgument("options", "of type object", options);
  const { checks = 0 } = options;
  requireNumber(checks, "options.checks");
  if (!Number.isInteger(checks) || checks < 0 || checks > 2 ** 31 - 1) throw outOfRange("options.checks", ">= 0 && <= 2147483647", checks);
  return () => native.isPrime(bytes);
}

function finishCheck(result) {
  if (typeof result !== "boolean") throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The number has more than 8,192 bits, or the check took too long");
  return result;
}

export function checkPrimeSync(candidate, options = undefined) {
  return finishCheck(native.onTheSpot(prepareCheck(candidate, options)));
}

export function checkPrime(candidate, options, callback = undefined) {
  const [given, done] = typeof options === "function" ? [undefined, options] : [options, callback];
  requireFunction(done, "callback");
  deliver(prepareCheck(candidate, given)(), finishCheck, done);
}
