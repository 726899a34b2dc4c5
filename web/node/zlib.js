// https://nodejs.org/api/zlib.html
import { Buffer } from "./buffer.js";
import { invalidArgument, outOfRange, requireFunction } from "./errors.js";
import { isAnyArrayBuffer } from "./util_types.js";
import { codes, constants } from "./zlib_constants.js";
import {
  BrotliCompress, BrotliDecompress, Deflate, DeflateRaw, Gunzip, Gzip, Inflate, InflateRaw, processSync, tooLarge, Unzip, ZstdCompress, ZstdDecompress,
} from "./zlib_streams.js";

function toBytes(data, name) {
  if (typeof data === "string") return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (isAnyArrayBuffer(data)) return new Uint8Array(data);
  throw invalidArgument(name, "of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer", data);
}

function runSync(stream, data) {
  const buffer = processSync(stream, toBytes(data, "buffer"), stream._finishFlushFlag);
  return stream._info ? { buffer, engine: stream } : buffer;
}

function run(stream, data, callback) {
  const pieces = [];
  let length = 0;
  let isDone = false;
  const finish = (error, result) => {
    if (isDone) return;
    isDone = true;
    callback(error, result);
  };
  stream.on("data", (piece) => {
    pieces.push(piece);
    length += piece.length;
    if (length <= stream._maxOutputLength) return;
    stream.close();
    finish(tooLarge(stream._maxOutputLength));
  });
  stream.on("error", finish);
  stream.on("end", () => {
    const buffer = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, length);
    stream.close();
    finish(null, stream._info ? { buffer, engine: stream } : buffer);
  });
  stream.end(typeof data === "string" ? data : toBytes(data, "chunk"));
}

const sync = (Class) => (data, options = undefined) => runSync(new Class(options), data);

function withCallback(Class) {
  return (data, options, callback = undefined) => {
    if (typeof options === "function") [options, callback] = [{}, options];
    requireFunction(callback, "callback");
    run(new Class(options), data, callback);
  };
}

export const createDeflate = (options = undefined) => new Deflate(options);
export const createInflate = (options = undefined) => new Inflate(options);
export const createDeflateRaw = (options = undefined) => new DeflateRaw(options);
export const createInflateRaw = (options = undefined) => new InflateRaw(options);
export const createGzip = (options = undefined) => new Gzip(options);
export const createGunzip = (options = undefined) => new Gunzip(options);
export const createUnzip = (options = undefined) => new Unzip(options);
export const createBrotliCompress = (options = undefined) => new BrotliCompress(options);
export const createBrotliDecompress = (options = undefined) => new BrotliDecompress(options);
export const createZstdCompress = (options = undefined) => new ZstdCompress(options);
export const createZstdDecompress = (options = undefined) => new ZstdDecompress(options);

export const deflate = withCallback(Deflate);
export const deflateSync = sync(Deflate);
export const inflate = withCallback(Inflate);
export const inflateSync = sync(Inflate);
export const deflateRaw = withCallback(DeflateRaw);
export const deflateRawSync = sync(DeflateRaw);
export const inflateRaw = withCallback(InflateRaw);
export const inflateRawSync = sync(InflateRaw);
export const gzip = withCallback(Gzip);
export const gzipSync = sync(Gzip);
export const gunzip = withCallback(Gunzip);
export const gunzipSync = sync(Gunzip);
export const unzip = withCallback(Unzip);
export const unzipSync = sync(Unzip);
export const brotliCompress = withCallback(BrotliCompress);
export const brotliCompressSync = sync(BrotliCompress);
export const brotliDecompress = withCallback(BrotliDecompress);
export const brotliDecompressSync = sync(BrotliDecompress);
export const zstdCompress = withCallback(ZstdCompress);
export const zstdCompressSync = sync(ZstdCompress);
export const zstdDecompress = withCallback(ZstdDecompress);
export const zstdDecompressSync = sync(ZstdDecompress);

let table = null; // table of CRC-32, created on first use

/** https://nodejs.org/api/zlib.html#zlibcrc32data-value */
export function crc32(data, value = 0) {
  if (typeof data !== "string" && !ArrayBuffer.isView(data)) {
    throw invalidArgument("data", "of type string or an instance of Buffer, TypedArray, or DataView", data);
  }
  if (typeof value !== "number") throw invalidArgument("value", "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange("value", "an integer", value);
  if (value < 0 || value > 0xffffffff) throw outOfRange("value", ">= 0 && <= 4294967295", value);
  table ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    let entry = byte;
    for (let bit = 0; bit < 8; bit++) entry = entry & 1 ? (entry >>> 1) ^ 0xedb88320 : entry >>> 1;
    return entry;
  });
  let crc = ~value;
  for (const byte of toBytes(data, "data")) crc = (crc >>> 8) ^ table[(crc ^ byte) & 255];
  return ~crc >>> 0;
}

export {
  BrotliCompress, BrotliDecompress, codes, constants, Deflate, DeflateRaw, Gunzip, Gzip, Inflate, InflateRaw, Unzip, ZstdCompress, ZstdDecompress,
};
