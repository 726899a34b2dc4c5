// https://tc39.es/proposal-math-sum/#sec-math.sumprecise: the sum of numbers, rounded once. It is computed exactly, as an integer
// in units of 2 ** -1074, the smallest positive number.
const DIGITS = 53; // of a number's significand
const SMALLEST = -1074;

const number = new Float64Array(1);
const words = new Uint32Array(number.buffer); // little-endian, as all machines of V8

/** The nearest number to an integer in those units; ties go to the even one. */
function nearest(total) {
  const isNegative = total < 0n;
  let left = isNegative ? -total : total;
  const shift = left.toString(2).length - DIGITS;
  let exponent = SMALLEST;
  if (shift > 0) {
    const bits = BigInt(shift);
    const rest = left & ((1n << bits) - 1n);
    const half = 1n << (bits - 1n);
    left >>= bits;
    if (rest > half || (rest === half && (left & 1n) === 1n)) left += 1n;
    exponent += shift;
  }
  const value = Number(left) * 2 ** exponent;
  return isNegative ? -value : value;
}

export function sumPrecise(items) {
  const parts = new Map(); // exponent -> sum of the significands, as integers
  let special = 0; // the sum of those that are not finite
  let isMinusZero = true;
  for (const item of items) {
    if (typeof item !== "number") throw new TypeError("Math.sumPrecise: an item is not a number.");
    if (!Number.isFinite(item)) special += item;
    if (!Object.is(item, -0)) isMinusZero = false;
    if (item === 0 || !Number.isFinite(item)) continue;
    number[0] = item;
    const high = words[1];
    const biased = (high >>> 20) & 0x7ff;
    const significand = ((high & 0xfffff) + (biased === 0 ? 0 : 0x100000)) * 2 ** 32 + words[0];
    const exponent = biased === 0 ? 0 : biased - 1;
    parts.set(exponent, (parts.get(exponent) ?? 0n) + BigInt(item < 0 ? -significand : significand));
  }
  if (special !== 0) return special; // also NaN
  if (isMinusZero) return -0;
  let total = 0n;
  for (const [exponent, sum] of parts) total += sum << BigInt(exponent);
  return total === 0n ? 0 : nearest(total);
}
