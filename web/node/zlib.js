// https://nodejs.org/api/zlib.html, on the engine's zlib. Levels and strategies are accepted and have no effect.
import { lazy } from "../internal/lazy.js";
import { Zlib } from "../streams/compression.js";
import { setImmediate } from "../timers.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, outOfRange, requireFunction } from "./errors.js";

const NOTHING = new Uint8Array(0);

// The format names of the Compression standard; null means detect from the data.
const KINDS = {
  Gzip: { format: "gzip", inflates: false },
  Gunzip: { format: "gzip", inflates: true },
  Deflate: { format: "deflate", inflates: false },
  Inflate: { format: "deflate", inflates: true },
  DeflateRaw: { format: "deflate-raw", inflates: false },
  InflateRaw: { format: "deflate-raw", inflates: true },
  Unzip: { format: null, inflates: true },
};

function toBytes(data) {
  if (typeof data === "string") return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw invalidArgument("buffer", "of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer", data);
}

function zlibError(code, errno, message) {
  return Object.assign(codedError(Error, code, message), { errno });
}

const shortInput = () => zlibError("Z_BUF_ERROR", -5, "unexpected end of file");

/** Compresses or decompresses data that arrives in pieces. */
class Run {
  #kind;
  #zlib = null;
  #isGzip = false;
  #isOver = false; // data after the end is ignored
  #mayBeShort;

  constructor(kind, options) {
    if (options?.dictionary !== undefined) throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The option dictionary of node:zlib is not supported");
    this.#kind = kind;
    this.#mayBeShort = options?.finishFlush === constants.Z_SYNC_FLUSH;
  }

  *feed(bytes) {
    if (bytes.length === 0 || this.#isOver) return;
    const { format, inflates } = this.#kind;
    if (this.#zlib === null) {
      const found = format ?? (bytes[0] === 0x1f && (bytes.length === 1 || bytes[1] === 0x8b) ? "gzip" : "deflate");
      this.#isGzip = found === "gzip";
      this.#zlib = new Zlib(found, inflates);
    }
    try {
      for (let left = bytes.length; left > 0 && !this.#isOver; left = this.#zlib.left) {
        const rest = bytes.subarray(bytes.length - left);
        if (this.#zlib.isEnded && !this.#beginsAnother(rest)) return;
        yield* this.#zlib.pieces(rest, false);
      }
    } catch (error) {
      throw this.#zlib.fault === null ? error : zlibError("Z_DATA_ERROR", -3, this.#zlib.fault);
    }
  }

  // A gzip file may have several members, padded with zeros. In other formats, data after the end is ignored.
  #beginsAnother(rest) {
    this.#isOver = !this.#isGzip || rest[0] === 0;
    if (!this.#isOver) this.#zlib.reset();
    return !this.#isOver;
  }

  *end() {
    const { format, inflates } = this.#kind;
    if (inflates) {
      if (!this.#zlib?.isEnded && !this.#mayBeShort) throw shortInput();
      return;
    }
    this.#zlib ??= new Zlib(format, inflates);
    yield* this.#zlib.pieces(NOTHING, true);
  }
}

function runSync(kind, data, options = {}) {
  const run = new Run(kind, options);
  const most = options?.maxOutputLength ?? Infinity;
  const pieces = [];
  let length = 0;
  const take = (piece) => {
    length += piece.length;
    if (length > most) throw codedError(RangeError, "ERR_BUFFER_TOO_LARGE", `Cannot create a Buffer larger than ${most} bytes`);
    pieces.push(piece);
  };
  const bytes = toBytes(data);
  for (const piece of run.feed(bytes)) take(piece);
  for (const piece of run.end()) take(piece);
  return Buffer.concat(pieces, length);
}

function withCallback(kind) {
  return (data, options, callback = options) => {
    requireFunction(callback, "callback");
    toBytes(data);
    setImmediate(() => {
      let result;
      try {
        result = runSync(kind, data, typeof options === "function" ? {} : options);
      } catch (error) {
        callback(error);
        return;
      }
      callback(null, result);
    });
  };
}

function makeClass(name, kind) {
  const { Transform } = lazy("node/stream.js");
  return {
    [name]: class extends Transform {
      #run;
      bytesWritten = 0;

      constructor(options = undefined) {
        super(options);
        this.#run = new Run(kind, options);
      }

      _transform(chunk, encoding, callback) {
        try {
          this.bytesWritten += chunk.length;
          for (const piece of this.#run.feed(toBytes(chunk))) this.push(Buffer.from(piece.buffer));
          callback();
        } catch (error) {
          callback(error);
        }
      }

      _flush(callback) {
        try {
          for (const piece of this.#run.end()) this.push(Buffer.from(piece.buffer));
          callback();
        } catch (error) {
          callback(error);
        }
      }

      close(callback = undefined) {
        if (callback !== undefined) this.once("close", callback);
        this.destroy();
      }
    },
  }[name];
}

const classes = new Map();

function create(name, options) {
  if (!classes.has(name)) classes.set(name, makeClass(name, KINDS[name]));
  return new (classes.get(name))(options);
}

export const createGzip = (options) => create("Gzip", options);
export const createGunzip = (options) => create("Gunzip", options);
export const createDeflate = (options) => create("Deflate", options);
export const createInflate = (options) => create("Inflate", options);
export const createDeflateRaw = (options) => create("DeflateRaw", options);
export const createInflateRaw = (options) => create("InflateRaw", options);
export const createUnzip = (options) => create("Unzip", options);

export const gzipSync = (data, options) => runSync(KINDS.Gzip, data, options);
export const gunzipSync = (data, options) => runSync(KINDS.Gunzip, data, options);
export const deflateSync = (data, options) => runSync(KINDS.Deflate, data, options);
export const inflateSync = (data, options) => runSync(KINDS.Inflate, data, options);
export const deflateRawSync = (data, options) => runSync(KINDS.DeflateRaw, data, options);
export const inflateRawSync = (data, options) => runSync(KINDS.InflateRaw, data, options);
export const unzipSync = (data, options) => runSync(KINDS.Unzip, data, options);

export const gzip = withCallback(KINDS.Gzip);
export const gunzip = withCallback(KINDS.Gunzip);
export const deflate = withCallback(KINDS.Deflate);
export const inflate = withCallback(KINDS.Inflate);
export const deflateRaw = withCallback(KINDS.DeflateRaw);
export const inflateRaw = withCallback(KINDS.InflateRaw);
export const unzip = withCallback(KINDS.Unzip);

let table = null; // table of CRC-32, created on first use

/** https://nodejs.org/api/zlib.html#zlibcrc32data-value */
export function crc32(data, value = 0) {
  if (!(Number.isInteger(value) && value >= 0 && value <= 0xffffffff)) throw outOfRange("value", ">= 0 && <= 4294967295", value);
  table ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    let entry = byte;
    for (let bit = 0; bit < 8; bit++) entry = entry & 1 ? (entry >>> 1) ^ 0xedb88320 : entry >>> 1;
    return entry;
  });
  let crc = ~value;
  for (const byte of toBytes(data)) crc = (crc >>> 8) ^ table[(crc ^ byte) & 255];
  return ~crc >>> 0;
}

export const constants = {
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1,
  Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
  Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2,
  Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64,
  Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9,
  Z_DEFAULT_LEVEL: -1,
};
