// The classes of https://nodejs.org/api/zlib.html: transform streams, each on a codec of the engine.
import { lazy } from "../internal/lazy.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument } from "./errors.js";
import { nextTick } from "./process.js";
import { Codec } from "./zlib_codec.js";
import { constants } from "./zlib_constants.js";
import { brotliParameters, chunkSizeOf, dictionaryOf, inRange, zlibSettings, zstdParameters } from "./zlib_options.js";

const FLUSH = Symbol("flush");

// What each family does with data: as it comes, at the end, and when it is asked for everything.
const ZLIB = { flush: constants.Z_NO_FLUSH, finish: constants.Z_FINISH, full: constants.Z_FULL_FLUSH, most: constants.Z_BLOCK };
const BROTLI = { flush: 0, finish: constants.BROTLI_OPERATION_FINISH, full: constants.BROTLI_OPERATION_FLUSH, most: constants.BROTLI_OPERATION_EMIT_METADATA };
const ZSTD = { flush: 0, finish: constants.ZSTD_e_end, full: constants.ZSTD_e_flush, most: constants.ZSTD_e_end };

// From the weakest to the strongest.
const STRENGTHS = [constants.Z_NO_FLUSH, constants.Z_BLOCK, constants.Z_PARTIAL_FLUSH, constants.Z_SYNC_FLUSH, constants.Z_FULL_FLUSH, constants.Z_FINISH];
const stronger = (one, other) => (STRENGTHS.indexOf(one) > STRENGTHS.indexOf(other) ? one : other);

const flushBuffers = new Map(); // kind -> the empty chunk that asks for it

function flushBuffer(kind) {
  if (!flushBuffers.has(kind)) flushBuffers.set(kind, Object.assign(Buffer.alloc(0), { [FLUSH]: kind }));
  return flushBuffers.get(kind);
}

function requireOpen(stream) {
  if (stream._handle === null) throw codedError(Error, "ERR_INTERNAL_ASSERTION", "zlib binding closed");
}

function closeHandle(stream) {
  stream._handle?.close();
  stream._handle = null;
}

function tooLarge(most) {
  return codedError(RangeError, "ERR_BUFFER_TOO_LARGE", `Cannot create a Buffer larger than ${most} bytes`);
}

/** The base of all classes. Not exported by Node either. */
function ZlibBase(options, family, makeCodec) {
  const { Transform } = lazy("node/stream.js");
  const chunkSize = chunkSizeOf(options);
  const flush = inRange(options?.flush, "options.flush", 0, family.most, family.flush);
  const finish = inRange(options?.finishFlush, "options.finishFlush", 0, family.most, family.finish);
  const most = inRange(options?.maxOutputLength, "options.maxOutputLength", 1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const { rejectGarbageAfterEnd: rejects = false } = options ?? {};
  if (typeof rejects !== "boolean") throw invalidArgument("options.rejectGarbageAfterEnd", "of type boolean", rejects);
  this._handle = makeCodec();
  this._writeState = this._handle.writeState;
  Transform.call(this, { autoDestroy: true, ...options, encoding: null, objectMode: false, writableObjectMode: false });
  this.bytesWritten = 0;
  this._chunkSize = chunkSize;
  this._outBuffer = Buffer.allocUnsafe(chunkSize);
  this._outOffset = 0;
  this._defaultFlushFlag = flush;
  this._finishFlushFlag = finish;
  this._defaultFullFlushFlag = family.full;
  this._info = options?.info;
  this._maxOutputLength = most;
  this._rejectGarbageAfterEnd = rejects;
  this._resume = null; // continues a chunk whose output was not wanted yet
}

/** Yields the output for a chunk; returns false if data follows the end of the format. */
function* outputOf(stream, chunk, flush) {
  let at = 0;
  for (;;) {
    const from = stream._outOffset;
    const { taken, given, wantsRoom } = stream._handle.step(chunk, at, stream._outBuffer, from, flush);
    at += taken;
    stream.bytesWritten += taken;
    stream._outOffset += given;
    const piece = given > 0 ? stream._outBuffer.subarray(from, from + given) : null;
    if (stream._outOffset >= stream._chunkSize) {
      stream._outBuffer = Buffer.allocUnsafe(stream._chunkSize);
      stream._outOffset = 0;
    }
    if (piece !== null) yield piece;
    if (stream._handle === null) return true; // closed by what took the piece
    if (!wantsRoom) return at === chunk.length;
  }
}

const trailing = () => codedError(TypeError, "ERR_TRAILING_JUNK_AFTER_STREAM_END", "Trailing junk found after the end of the compressed stream");

function processSync(stream, chunk, flush) {
  const pieces = [];
  let length = 0;
  try {
    const output = outputOf(stream, chunk, flush);
    let next = output.next();
    for (; !next.done; next = output.next()) {
      pieces.push(next.value);
      length += next.value.length;
      if (length > stream._maxOutputLength) throw tooLarge(stream._maxOutputLength);
    }
    if (!next.value && stream._rejectGarbageAfterEnd) throw trailing();
  } finally {
    closeHandle(stream);
  }
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, length);
}

function process(stream, chunk, flush, done) {
  if (stream._handle === null) return nextTick(done);
  const output = outputOf(stream, chunk, flush);
  const run = () => {
    stream._resume = null;
    let next;
    try {
      do {
        if (stream._handle === null) return;
        next = output.next();
        if (!next.done && !stream.push(next.value)) {
          stream._resume = run; // until it is read
          return;
        }
      } while (!next.done);
    } catch (error) {
      stream.destroy(error);
      return;
    }
    if (next.value) done();
    else if (stream._rejectGarbageAfterEnd) stream.destroy(trailing());
    else stream.push(null); // what follows is ignored
  };
  nextTick(run);
}

const METHODS = {
  _transform(chunk, encoding, callback) {
    let flush = typeof chunk[FLUSH] === "number" ? chunk[FLUSH] : this._defaultFlushFlag;
    if (this.writableEnded && this.writableLength === chunk.byteLength) flush = stronger(flush, this._finishFlushFlag);
    process(this, chunk, flush, callback);
  },
  _flush(callback) {
    this._transform(Buffer.alloc(0), "", callback);
  },
  _final(callback) {
    callback();
  },
  _read(size) {
    if (this._resume !== null) this._resume();
    else lazy("node/stream.js").Transform.prototype._read.call(this, size);
  },
  _destroy(error, callback) {
    closeHandle(this);
    callback(error);
  },
  _processChunk(chunk, flush, callback) {
    if (typeof callback === "function") process(this, chunk, flush, callback);
    else return processSync(this, chunk, flush);
  },
  flush(kind, callback) {
    if (typeof kind === "function" || (kind === undefined && !callback)) [kind, callback] = [this._defaultFullFlushFlag, kind];
    if (this.writableFinished) {
      if (callback) nextTick(callback);
    } else if (this.writableEnded) {
      if (callback) this.once("end", callback);
    } else {
      this.write(flushBuffer(kind), "", callback);
    }
  },
  close(callback = undefined) {
    if (callback) lazy("node/stream.js").finished(this, callback);
    this.destroy();
  },
  reset() {
    requireOpen(this);
    this._handle.reset();
  },
};

// Of the classes on zlib itself.
function params(level, strategy, callback) {
  inRange(level, "level", constants.Z_MIN_LEVEL, constants.Z_MAX_LEVEL);
  inRange(strategy, "strategy", constants.Z_DEFAULT_STRATEGY, constants.Z_FIXED);
  if (this._level === level && this._strategy === strategy) return nextTick(callback);
  this.flush(constants.Z_SYNC_FLUSH, () => {
    requireOpen(this);
    this._handle.params(level, strategy);
    if (this.destroyed) return;
    this._level = level;
    this._strategy = strategy;
    callback?.();
  });
}

let isPrepared = false;

// node:stream is large: it is loaded with the first instance, not with the import.
function prepare() {
  if (isPrepared) return;
  isPrepared = true;
  const { Transform } = lazy("node/stream.js");
  Object.setPrototypeOf(ZlibBase.prototype, Transform.prototype);
  Object.setPrototypeOf(ZlibBase, Transform);
}

function hide(target, members) {
  for (const [name, value] of Object.entries(members)) Object.defineProperty(target, name, { value, writable: true, configurable: true });
}

hide(ZlibBase.prototype, METHODS);
Object.defineProperty(ZlibBase.prototype, "_closed", {
  get() {
    return this._handle === null;
  },
  configurable: true,
});

/** A class as Node has them: most are functions that can be called without `new`. */
function makeClass(name, construct, { needsNew = false, members = {} } = {}) {
  const Class = function (options) {
    prepare();
    if (!new.target && needsNew) throw new TypeError(`Class constructor ${name} cannot be invoked without 'new'`);
    if (!(this instanceof Class)) return new Class(options);
    construct.call(this, options);
  };
  Object.defineProperty(Class, "name", { value: name });
  Object.setPrototypeOf(Class.prototype, ZlibBase.prototype);
  Object.setPrototypeOf(Class, ZlibBase);
  hide(Class.prototype, members);
  return Class;
}

function zlibClass(name, mode) {
  return makeClass(name, function (options) {
    // zlib cannot write raw data with a window of 8 bits.
    const chosen = mode === constants.DEFLATERAW && options?.windowBits === 8 ? { ...options, windowBits: 9 } : options;
    const { level, windowBits, memLevel, strategy } = zlibSettings(chosen, mode);
    const dictionary = dictionaryOf(chosen);
    ZlibBase.call(this, chosen, ZLIB, () => new Codec(mode, [level, windowBits, memLevel, strategy, chosen?.rejectGarbageAfterEnd === true], dictionary));
    this._level = level;
    this._strategy = strategy;
  }, { members: { params } });
}

function brotliClass(name, mode) {
  return makeClass(name, function (options) {
    const parameters = brotliParameters(options);
    const dictionary = dictionaryOf(options);
    ZlibBase.call(this, options, BROTLI, () => new Codec(mode, parameters, dictionary));
  });
}

function zstdClass(name, mode) {
  return makeClass(name, function (options) {
    const parameters = zstdParameters(options, mode === constants.ZSTD_COMPRESS);
    const dictionary = dictionaryOf(options);
    ZlibBase.call(this, options, ZSTD, () => new Codec(mode, parameters, dictionary));
  }, { needsNew: true });
}

export const Deflate = zlibClass("Deflate", constants.DEFLATE);
export const Inflate = zlibClass("Inflate", constants.INFLATE);
export const Gzip = zlibClass("Gzip", constants.GZIP);
export const Gunzip = zlibClass("Gunzip", constants.GUNZIP);
export const DeflateRaw = zlibClass("DeflateRaw", constants.DEFLATERAW);
export const InflateRaw = zlibClass("InflateRaw", constants.INFLATERAW);
export const Unzip = zlibClass("Unzip", constants.UNZIP);
export const BrotliCompress = brotliClass("BrotliCompress", constants.BROTLI_ENCODE);
export const BrotliDecompress = brotliClass("BrotliDecompress", constants.BROTLI_DECODE);
export const ZstdCompress = zstdClass("ZstdCompress", constants.ZSTD_COMPRESS);
export const ZstdDecompress = zstdClass("ZstdDecompress", constants.ZSTD_DECOMPRESS);

export { processSync, tooLarge };
