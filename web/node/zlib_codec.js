// One codec of the engine: compresses or decompresses data that arrives in pieces.
import { native } from "../internal/native.js";
import { codedError } from "./errors.js";
import { constants } from "./zlib_constants.js";

const ENDED = 1;
const FAILED = 2;
const MOST_BYTES = 65_536; // of one step, as in engine/src/native/codec.cc

const result = new Uint32Array(3); // of the last step: bytes read, bytes written, status

export function zlibError(message, errno, code) {
  const error = codedError(Error, code, message);
  error.errno = errno;
  return error;
}

const zstdName = (errno) => Object.keys(constants).find((name) => name.startsWith("ZSTD_error_") && constants[name] === errno) ?? "ZSTD_error_GENERIC";

function failure(detail) {
  const [code, number, ...message] = detail.split("\n");
  const errno = Number(number);
  return zlibError(message.join("\n"), errno, code === "" ? zstdName(errno) : code);
}

// A format that ends by itself: data may be missing, or follow after it.
const SELF_ENDING = new Set([constants.INFLATE, constants.GUNZIP, constants.INFLATERAW, constants.UNZIP, constants.BROTLI_DECODE, constants.ZSTD_DECOMPRESS]);

export class Codec {
  #handle;
  #mode;
  #isEnded = false;
  #isFinished = false; // a compressor has written its end
  writeState = new Uint32Array(2); // of the last writeSync()

  constructor(mode, settings, dictionary = undefined) {
    this.#mode = mode;
    this.#handle = native.codecOpen(mode, Int32Array.from(settings), dictionary);
    if (this.#handle !== undefined) return;
    const reason = mode === constants.ZSTD_COMPRESS || mode === constants.ZSTD_DECOMPRESS ? "Setting parameter failed" : "Initialization failed";
    throw codedError(Error, "ERR_ZLIB_INITIALIZATION_FAILED", reason);
  }

  /**
   * One step: fills `output` from `from` on with what comes of `input` from `at` on. Returns how much it has read and
   * written, and whether it wants to be called again with more room.
   */
  step(input, at, output, from, flush) {
    if (this.#isFinished && at === input.length) return { taken: 0, given: 0, wantsRoom: false };
    const room = output.subarray(from);
    const detail = native.codecStep(this.#handle, input, at, room, flush, result);
    const [taken, given, status] = result;
    if (status === FAILED) throw failure(detail);
    this.#isEnded = status === ENDED;
    const decodes = SELF_ENDING.has(this.#mode);
    if (!decodes && this.#isEnded) this.#isFinished = true;
    const isRead = at + taken === input.length;
    const wantsRoom = given === Math.min(room.length, MOST_BYTES) || (!isRead && !(decodes && this.#isEnded) && (taken > 0 || given > 0));
    if (!wantsRoom && isRead) this.#requireEnd(flush);
    return { taken, given, wantsRoom };
  }

  /**
   * As packages call it on a stream's `_handle` (pngjs): takes `length` bytes of `input` from `at` on until they are read or
   * the room is full. `writeState`, the stream's `_writeState`, then says how much of the room and of the input is left.
   */
  writeSync(flush, input, at, length, output, from, room) {
    const source = input.subarray(0, at + length);
    const target = output.subarray(0, from + room);
    for (let wantsRoom = true; wantsRoom && from < target.length; ) {
      const done = this.step(source, at, target, from, flush);
      at += done.taken;
      from += done.given;
      wantsRoom = done.wantsRoom;
    }
    this.writeState.set([target.length - from, source.length - at]);
  }

  // All input is there, and there is room for more output.
  #requireEnd(flush) {
    if (this.#isEnded || !SELF_ENDING.has(this.#mode) || this.#mode === constants.ZSTD_DECOMPRESS) return;
    const last = this.#mode === constants.BROTLI_DECODE ? constants.BROTLI_OPERATION_FINISH : constants.Z_FINISH;
    if (flush === last) throw zlibError("unexpected end of file", constants.Z_BUF_ERROR, "Z_BUF_ERROR");
  }

  params(level, strategy) {
    if (!native.codecParams(this.#handle, level, strategy)) throw zlibError("Failed to set parameters", constants.Z_STREAM_ERROR, "Z_STREAM_ERROR");
  }

  reset() {
    this.#isEnded = false;
    this.#isFinished = false;
    if (!native.codecReset(this.#handle)) throw zlibError("Failed to reset stream", constants.Z_STREAM_ERROR, "Z_STREAM_ERROR");
  }

  close() {
    native.codecClose(this.#handle);
  }
}
