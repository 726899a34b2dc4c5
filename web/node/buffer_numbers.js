// The methods of Buffer that read and write numbers, readUInt8 … writeDoubleLE, generated from one table.
// https://nodejs.org/api/buffer.html#bufreadbigint64beoffset
import { codedError, invalidArgument, outOfRange } from "./errors.js";

const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);

function checkOffset(buffer, offset, size) {
  if (typeof offset !== "number") throw invalidArgument("offset", "of type number", offset);
  const most = buffer.length - size;
  if (Number.isInteger(offset) && offset >= 0 && offset <= most) return;
  if (Math.floor(offset) !== offset) throw outOfRange("offset", "an integer", offset);
  if (most < 0) throw codedError(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");
  throw outOfRange("offset", `>= 0 and <= ${most}`, offset);
}

function checkValue(value, least, most, size) {
  const isBig = typeof least === "bigint";
  if (isBig && typeof value !== "bigint") throw invalidArgument("value", "of type bigint", value);
  if (!(value < least || value > most)) return;
  const n = isBig ? "n" : "";
  const isUnsigned = Number(least) === 0;
  const power = `2${n} ** ${8 * size - (isUnsigned ? 0 : 1)}${n}`;
  const range = isUnsigned ? `>= 0${n} and < ${power}` : `>= -(${power}) and < ${power}`;
  throw outOfRange("value", size > 4 ? range : `>= ${least} and <= ${most}`, value);
}

function addMethod(methods, name, method) {
  methods[name] = Object.defineProperty(method, "name", { value: name, configurable: true });
}

// `kind`: as in the names of DataView's methods. `least` is undefined for floating point numbers, which have no range.
function addNumber(methods, name, { kind, size, endian, least, most, isBig }) {
  const little = endian === "LE";
  const get = DataView.prototype[`get${kind}`];
  const set = DataView.prototype[`set${kind}`];
  const suffix = `${name}${size === 1 ? "" : endian}`;
  addMethod(methods, `read${suffix}`, function (offset = 0) {
    checkOffset(this, offset, size);
    return get.call(view(this), offset, little);
  });
  addMethod(methods, `write${suffix}`, function (value, offset = 0) {
    const number = isBig ? value : Number(value);
    if (least !== undefined) checkValue(number, least, most, size);
    checkOffset(this, offset, size);
    set.call(view(this), offset, number, little);
    return offset + size;
  });
}

function requireByteLength(size) {
  if (typeof size !== "number") throw invalidArgument("byteLength", "of type number", size);
  if (Math.floor(size) !== size) throw outOfRange("byteLength", "an integer", size);
  if (size < 1 || size > 6) throw outOfRange("byteLength", ">= 1 and <= 6", size);
}

// Integers of 1 to 6 bytes. Numbers, not bigints: 48 bits fit.
function readBytes(buffer, offset, size, little, signed) {
  requireByteLength(size);
  checkOffset(buffer, offset, size);
  let value = 0;
  for (let i = 0; i < size; i++) value = value * 256 + buffer[offset + (little ? size - 1 - i : i)];
  return signed && value >= 2 ** (8 * size - 1) ? value - 2 ** (8 * size) : value;
}

function writeBytes(buffer, value, offset, size, little, signed) {
  requireByteLength(size);
  const number = Number(value);
  const half = 2 ** (8 * size - 1);
  checkValue(number, signed ? -half : 0, signed ? half - 1 : 2 * half - 1, size);
  checkOffset(buffer, offset, size);
  let rest = number < 0 ? number + 2 * half : number;
  for (let i = 0; i < size; i++) {
    buffer[offset + (little ? i : size - 1 - i)] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return offset + size;
}

function makeMethods() {
  const methods = {};
  for (const endian of ["LE", "BE"]) {
    const little = endian === "LE";
    for (const size of [1, 2, 4]) {
      const bits = 8 * size;
      addNumber(methods, `UInt${bits}`, { kind: `Uint${bits}`, size, endian, least: 0, most: 2 ** bits - 1 });
      addNumber(methods, `Int${bits}`, { kind: `Int${bits}`, size, endian, least: -(2 ** (bits - 1)), most: 2 ** (bits - 1) - 1 });
    }
    addNumber(methods, "BigUInt64", { kind: "BigUint64", size: 8, endian, least: 0n, most: 2n ** 64n - 1n, isBig: true });
    addNumber(methods, "BigInt64", { kind: "BigInt64", size: 8, endian, least: -(2n ** 63n), most: 2n ** 63n - 1n, isBig: true });
    addNumber(methods, "Float", { kind: "Float32", size: 4, endian });
    addNumber(methods, "Double", { kind: "Float64", size: 8, endian });
    for (const [name, signed] of [["UInt", false], ["Int", true]]) {
      addMethod(methods, `read${name}${endian}`, function (offset, byteLength) {
        return readBytes(this, offset, byteLength, little, signed);
      });
      addMethod(methods, `write${name}${endian}`, function (value, offset, byteLength) {
        return writeBytes(this, value, offset, byteLength, little, signed);
      });
    }
  }
  return methods;
}

/** Node has two spellings for each unsigned method. */
export function addNumberMethods(prototype) {
  for (const [name, method] of Object.entries(makeMethods())) {
    for (const alias of name.includes("UInt") ? [name, name.replace("UInt", "Uint")] : [name]) {
      Object.defineProperty(prototype, alias, { value: method, writable: true, enumerable: true, configurable: true });
    }
  }
}
