// Checks the options of node:zlib and turns them into the settings of a codec, with the errors of Node.
import { codedError, invalidArgument, outOfRange, requireNumber } from "./errors.js";
import { constants } from "./zlib_constants.js";

const BYTES = "an instance of Buffer, TypedArray, DataView, or ArrayBuffer";

// False for undefined and NaN, which stand for the default.
function isGiven(number, name) {
  if (number === undefined) return false;
  if (Number.isFinite(number)) return true;
  if (Number.isNaN(number)) return false;
  requireNumber(number, name);
  throw outOfRange(name, "a finite number", number);
}

export function inRange(number, name, lower, upper, fallback = undefined) {
  if (!isGiven(number, name)) return fallback;
  if (number < lower || number > upper) throw outOfRange(name, `>= ${lower} and <= ${upper}`, number);
  return number;
}

export function chunkSizeOf(options) {
  const size = options?.chunkSize;
  if (!isGiven(size, "options.chunkSize")) return constants.Z_DEFAULT_CHUNK;
  if (size < constants.Z_MIN_CHUNK) throw outOfRange("options.chunkSize", `>= ${constants.Z_MIN_CHUNK}`, size);
  return size;
}

/** Bytes of a dictionary; undefined if there is none. */
export function dictionaryOf(options) {
  const dictionary = options?.dictionary;
  if (dictionary === undefined) return undefined;
  if (ArrayBuffer.isView(dictionary)) return new Uint8Array(dictionary.buffer, dictionary.byteOffset, dictionary.byteLength);
  if (dictionary instanceof ArrayBuffer) return new Uint8Array(dictionary);
  throw invalidArgument("options.dictionary", BYTES, dictionary);
}

/** Level, window bits, memory level and strategy. */
export function zlibSettings(options, mode) {
  const { Z_DEFAULT_WINDOWBITS, Z_DEFAULT_LEVEL, Z_DEFAULT_MEMLEVEL, Z_DEFAULT_STRATEGY } = constants;
  const settings = { level: Z_DEFAULT_LEVEL, windowBits: Z_DEFAULT_WINDOWBITS, memLevel: Z_DEFAULT_MEMLEVEL, strategy: Z_DEFAULT_STRATEGY };
  if (!options) return settings;
  const readsSize = mode === constants.INFLATE || mode === constants.GUNZIP || mode === constants.UNZIP;
  if (readsSize && (options.windowBits === undefined || options.windowBits === null || options.windowBits === 0)) {
    settings.windowBits = 0; // as the data says
  } else {
    const least = constants.Z_MIN_WINDOWBITS + (mode === constants.GZIP ? 1 : 0);
    settings.windowBits = inRange(options.windowBits, "options.windowBits", least, constants.Z_MAX_WINDOWBITS, Z_DEFAULT_WINDOWBITS);
  }
  settings.level = inRange(options.level, "options.level", constants.Z_MIN_LEVEL, constants.Z_MAX_LEVEL, Z_DEFAULT_LEVEL);
  settings.memLevel = inRange(options.memLevel, "options.memLevel", constants.Z_MIN_MEMLEVEL, constants.Z_MAX_MEMLEVEL, Z_DEFAULT_MEMLEVEL);
  settings.strategy = inRange(options.strategy, "options.strategy", Z_DEFAULT_STRATEGY, constants.Z_FIXED, Z_DEFAULT_STRATEGY);
  return settings;
}

/** Keys and values in turn. `isKey` says which keys the format has. */
function parametersOf(options, isKey, refusal) {
  const found = [];
  for (const [name, value] of Object.entries(options?.params ?? {})) {
    const key = Number(name);
    if (Number.isNaN(key) || !isKey(key)) throw refusal(name);
    if (typeof value !== "number" && typeof value !== "boolean") throw invalidArgument("options.params[key]", "of type number", value);
    found.push(key, Number(value));
  }
  return found;
}

const badBrotli = (name) => codedError(RangeError, "ERR_BROTLI_INVALID_PARAM", `${name} is not a valid Brotli parameter`);
const badZstd = (name) => codedError(RangeError, "ERR_ZSTD_INVALID_PARAM", `${name} is not a valid zstd parameter`);

export function brotliParameters(options) {
  return parametersOf(options, (key) => Number.isInteger(key) && key >= 0 && key <= constants.BROTLI_PARAM_NDIRECT, badBrotli);
}

// As in engine/src/native/codec_zstd.cc: the two halves of the size of the input.
const INPUT_SIZE_LOW = 10_000;
const INPUT_SIZE_HIGH = 10_001;
const ZSTD_C_MOST = constants.ZSTD_c_overlapLog;

export function zstdParameters(options, compresses) {
  const most = compresses ? ZSTD_C_MOST : constants.ZSTD_d_windowLogMax;
  const found = parametersOf(options, (key) => Number.isInteger(key) && key >= 0 && key <= most, badZstd);
  const pledged = options?.pledgedSrcSize;
  if (pledged < 0) throw codedError(TypeError, "ERR_INVALID_ARG_VALUE", "pledgedSrcSize may not be negative");
  const size = Number(pledged);
  if (compresses && pledged !== null && size >= 0) {
    found.push(INPUT_SIZE_LOW, size % 2 ** 32 | 0, INPUT_SIZE_HIGH, Math.floor(size / 2 ** 32));
  }
  return found;
}
