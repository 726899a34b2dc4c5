// https://nodejs.org/api/fs.html#class-fsreadstream and #class-fswritestream
import { lazy } from "../internal/lazy.js";
import { Buffer } from "./buffer.js";
import { descriptorOf, flagsOf, optionsOf, pathOf, requireInteger } from "./fs_arguments.js";
import { close, open, read, write } from "./fs_sync.js";
import { invalidArgument, outOfRange } from "./errors.js";

const { finished, Readable, Writable } = lazy("node/stream.js");

const MOST = Number.MAX_SAFE_INTEGER;

function positionOf(value, name) {
  if (value === undefined) return undefined;
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
  return requireInteger(value, name, 0, MOST);
}

// A stream opens its file when it is made, or takes a descriptor or a FileHandle.
function begin(stream, path, given, flags) {
  stream.handle = typeof given.fd === "object" && given.fd !== null ? given.fd : (given.handle ?? null);
  stream.fd = given.fd === undefined || given.fd === null ? null : descriptorOf(stream.handle?.fd ?? given.fd);
  stream.flags = given.flags ?? flags;
  stream.mode = given.mode ?? 0o666;
  stream.autoClose = given.autoClose ?? true;
  if (stream.fd === null) {
    stream.path = typeof path === "string" || path instanceof Uint8Array ? path : pathOf(path);
    pathOf(path);
    flagsOf(stream.flags);
  } else {
    stream.path = undefined;
  }
}

function construct(stream, callback) {
  if (stream.fd !== null) return callback();
  try {
    stream.fd = open(stream.path, stream.flags, stream.mode);
  } catch (error) {
    return callback(error);
  }
  callback();
  stream.emit("open", stream.fd);
  stream.emit("ready");
}

function destroy(stream, error, callback) {
  let failed = error;
  if (stream.handle !== null && stream.autoClose) {
    stream.fd = null;
    stream.handle.close().then(() => callback(failed), callback);
    return;
  }
  if (stream.fd !== null && stream.autoClose) {
    try {
      close(stream.fd);
    } catch (problem) {
      failed ??= problem;
    }
    stream.fd = null;
  }
  callback(failed);
}

function closeWith(stream, callback) {
  if (typeof callback === "function") finished(stream, () => callback());
  stream.destroy();
}

class FileReader extends Readable {
  constructor(path, options = undefined) {
    const given = optionsOf(options);
    const { start, end = Infinity } = given;
    super({ highWaterMark: 64 * 1024, emitClose: true, ...given, autoDestroy: given.autoClose ?? true, objectMode: false });
    begin(this, path, given, "r");
    this.start = positionOf(start, "start");
    this.pos = this.start;
    this.end = end === Infinity ? Infinity : positionOf(end, "end");
    if (this.start !== undefined && this.start > this.end) throw outOfRange("start", `<= "end" (here: ${this.end})`, this.start);
    this.bytesRead = 0;
  }

  _construct(callback) {
    construct(this, callback);
  }

  _read(size) {
    const left = this.pos === undefined ? this.end - this.bytesRead + 1 : this.end - this.pos + 1;
    const wanted = Math.min(left, size);
    if (wanted <= 0) {
      this.push(null);
      return;
    }
    const buffer = Buffer.allocUnsafe(wanted);
    let count;
    try {
      count = read(this.fd, buffer, 0, wanted, this.pos ?? null);
    } catch (error) {
      this.destroy(error);
      return;
    }
    this.bytesRead += count;
    if (this.pos !== undefined) this.pos += count;
    this.push(count > 0 ? buffer.subarray(0, count) : null);
  }

  _destroy(error, callback) {
    destroy(this, error, callback);
  }

  close(callback = undefined) {
    closeWith(this, callback);
  }

  get pending() {
    return this.fd === null;
  }
}

class FileWriter extends Writable {
  constructor(path, options = undefined) {
    const given = optionsOf(options);
    super({ decodeStrings: true, emitClose: true, ...given, autoDestroy: given.autoClose ?? true, objectMode: false });
    begin(this, path, given, "w");
    this.start = positionOf(given.start, "start");
    this.pos = this.start;
    this.bytesWritten = 0;
    if (given.encoding) this.setDefaultEncoding(given.encoding);
  }

  _construct(callback) {
    construct(this, callback);
  }

  _write(chunk, encoding, callback) {
    let count;
    try {
      count = write(this.fd, chunk, 0, chunk.length, this.pos);
    } catch (error) {
      callback(error);
      return;
    }
    this.bytesWritten += count;
    if (this.pos !== undefined) this.pos += count;
    callback();
  }

  _destroy(error, callback) {
    destroy(this, error, callback);
  }

  close(callback = undefined) {
    if (typeof callback === "function") finished(this, () => callback());
    if (!this.autoClose) this.on("finish", this.destroy);
    this.end();
  }

  destroySoon() {
    this.end();
  }

  get pending() {
    return this.fd === null;
  }
}

// Node's classes can be called without `new`.
const callable = (Class, name) => {
  const Maker = function (path, options) {
    return Reflect.construct(Class, [path, options], new.target ?? Class);
  };
  Maker.prototype = Class.prototype;
  Object.defineProperty(Class.prototype, "constructor", { value: Maker, configurable: true, writable: true });
  return Object.defineProperty(Maker, "name", { value: name });
};

export const ReadStream = callable(FileReader, "ReadStream");
export const WriteStream = callable(FileWriter, "WriteStream");
