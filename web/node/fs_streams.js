// https://nodejs.org/api/fs.html#class-fsreadstream and #class-fswritestream
import { lazy } from "../internal/lazy.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, outOfRange, requireFunction } from "./errors.js";
import { descriptorOf, flagsOf, optionsOf, pathOf, requireInteger } from "./fs_arguments.js";
import { FileHandle } from "./fs_handle.js";
import { defineLegacyClass } from "./legacy_class.js";
import { getBuiltIn } from "./modules.js";
import { nextTick } from "./process.js";
import { requireBoolean } from "./validate.js";

const { finished, Readable, Writable } = lazy("node/stream.js");

const MOST = Number.MAX_SAFE_INTEGER;
const MOST_RETRIES = 5;
const ops = Symbol("kFs"); // open, read, write, writev, close, fsync
const handleOf = Symbol("kHandle");
const isBusy = Symbol("kIsPerformingIO");
const onIdle = Symbol("kIoDone");

function positionOf(value, name) {
  if (value === undefined) return undefined;
  if (typeof value !== "number") throw invalidArgument(name, "of type number", value);
  return requireInteger(value, name, 0, MOST);
}

// As in Node, inherited options count.
function allOptions(options) {
  const all = {};
  if (typeof options === "object" && options !== null) for (const name in options) all[name] = options[name];
  return optionsOf(typeof options === "object" ? all : options);
}

// The functions of a FileHandle, with callbacks.
function opsOf(handle) {
  const tell = (promise, callback, name) => promise.then((result) => callback(null, result?.[name], result?.buffer), callback);
  return {
    open: (path, flags, mode, callback) => callback(null),
    close: (fd, callback) => tell(handle.close(), callback),
    fsync: (fd, callback) => tell(handle.sync(), callback),
    read: (fd, buffer, offset, length, position, callback) => tell(handle.read(buffer, offset, length, position), callback, "bytesRead"),
    write: (fd, buffer, offset, length, position, callback) => tell(handle.write(buffer, offset, length, position), callback, "bytesWritten"),
    writev: (fd, buffers, position, callback) => tell(handle.writev(buffers, position), callback, "bytesWritten"),
  };
}

// A stream opens its file when it is made, or takes a descriptor or a FileHandle. What `begin` returns belongs to the stream.
function begin(path, given, flags, needed) {
  const state = { fd: null, flags: given.flags ?? flags, mode: given.mode ?? 0o666, [isBusy]: false, [ops]: given.fs || getBuiltIn("fs") };
  if (given.fs) for (const name of needed(given.fs)) requireFunction(given.fs[name], `options.fs.${name}`);
  const { fd } = given;
  if (fd === undefined || fd === null) {
    state.path = pathOf(path);
    if (typeof path === "string" || path instanceof Uint8Array) state.path = path;
    flagsOf(state.flags);
  } else if (fd instanceof FileHandle) {
    if (given.fs) throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The FileHandle with fs method is not implemented");
    Object.assign(state, { [handleOf]: fd, [ops]: opsOf(fd), fd: fd.fd });
  } else if (typeof fd === "number") {
    state.fd = descriptorOf(fd);
  } else {
    throw invalidArgument("options.fd", "of type number or an instance of FileHandle", fd);
  }
  return state;
}

const followHandle = (stream) => stream[handleOf]?.on("close", () => stream.close());
const streamOptions = (given) => ({ emitClose: true, ...given, autoDestroy: given.autoDestroy ?? given.autoClose ?? true, objectMode: false });

function openFile(stream, callback) {
  stream[ops].open(stream.path, stream.flags, stream.mode, (error, fd) => {
    if (error) {
      callback(error);
      return;
    }
    stream.fd = fd;
    // readable-stream would let a write that follows "open" overtake earlier ones: they wait until it is done with constructing.
    stream.cork?.();
    callback();
    if (stream.cork !== undefined) nextTick(() => nextTick(() => stream.uncork()));
    stream.emit("open", stream.fd);
    stream.emit("ready");
  });
}

function construct(stream, plainOpen, callback) {
  if (typeof stream.fd === "number") {
    callback();
    return;
  }
  if (stream.open === plainOpen) {
    openFile(stream, callback);
    return;
  }
  // Older packages replace open(), which tells of its end by events.
  const { emit } = stream;
  stream.emit = function (...args) {
    if (args[0] === "open") {
      this.emit = emit;
      callback();
      return emit.apply(this, args);
    }
    if (args[0] === "error") {
      this.emit = emit;
      return callback(args[1]);
    }
    return emit.apply(this, args);
  };
  stream.open();
}

function closeFile(stream, error, callback) {
  const { fd } = stream;
  if (fd === null) {
    callback(error);
    return;
  }
  const close = (failure) => {
    stream[ops].close(fd, (problem) => callback(problem || failure || error));
    stream.fd = null;
  };
  if (stream.flush) stream[ops].fsync(fd, close);
  else close();
}

// What is being read or written ends first.
function destroy(stream, error, callback) {
  if (stream[isBusy]) stream.once(onIdle, (failure) => closeFile(stream, error || failure, callback));
  else closeFile(stream, error, callback);
}

const oldOpen = {
  read(...args) {
    openFile(this, (error) => error && this.destroy(error), ...args);
  },
  write(...args) {
    openFile(this, (error) => error && this.destroy(error), ...args);
  },
};

/** https://nodejs.org/api/fs.html#class-fsreadstream */
export function ReadStream(path, options = undefined) {
  if (!(this instanceof ReadStream)) return new ReadStream(path, options);
  const given = allOptions(options);
  const state = begin(path, given, "r", () => ["open", "read", "close"]);
  const start = positionOf(given.start, "start");
  const end = given.end === undefined || given.end === Infinity ? Infinity : positionOf(given.end, "end");
  if (start !== undefined && start > end) throw outOfRange("start", `<= "end" (here: ${end})`, start);
  Object.assign(this, state, { start, pos: start, end, bytesRead: 0 });
  Readable.call(this, { highWaterMark: 64 * 1024, ...streamOptions(given) });
  followHandle(this);
}

class Reading extends Readable {
  _construct(callback) {
    construct(this, oldOpen.read, callback);
  }

  _read(size) {
    const left = this.pos === undefined ? this.end - this.bytesRead + 1 : this.end - this.pos + 1;
    const wanted = Math.min(left, size);
    if (wanted <= 0) {
      this.push(null);
      return;
    }
    this[isBusy] = true;
    this[ops].read(this.fd, Buffer.allocUnsafe(wanted), 0, wanted, this.pos, (error, count, buffer) => {
      this[isBusy] = false;
      if (this.destroyed) {
        this.emit(onIdle, error);
      } else if (error) {
        this.destroy(error);
      } else {
        if (count > 0) this.bytesRead += count;
        if (count > 0 && this.pos !== undefined) this.pos += count;
        // A copy of a short piece, so that it does not keep the memory of a long one.
        this.push(count === 0 ? null : count === buffer.length ? buffer : Buffer.from(buffer.subarray(0, count)));
      }
    });
  }

  _destroy(error, callback) {
    destroy(this, error, callback);
  }

  close(callback = undefined) {
    if (typeof callback === "function") finished(this, callback);
    this.destroy();
  }

  get autoClose() {
    return this._readableState.autoDestroy;
  }

  set autoClose(value) {
    this._readableState.autoDestroy = value;
  }

  get pending() {
    return this.fd === null;
  }
}

/** https://nodejs.org/api/fs.html#class-fswritestream */
export function WriteStream(path, options = undefined) {
  if (!(this instanceof WriteStream)) return new WriteStream(path, options);
  const given = allOptions(options);
  const state = begin(path, given, "w", (fs) => {
    const writing = ["write", "writev"].filter((name) => fs[name]);
    return ["open", ...(writing.length === 0 ? ["write"] : writing), "close"];
  });
  if (given.flush !== undefined && given.flush !== null) requireBoolean(given.flush, "options.flush");
  const start = positionOf(given.start, "start");
  Object.assign(this, state, { flush: given.flush ?? false, start, pos: start, bytesWritten: 0 });
  // A stream without one of them uses the other.
  if (!this[ops].write) this._write = null;
  if (!this[ops].writev) this._writev = null;
  Writable.call(this, { ...streamOptions(given), decodeStrings: true });
  followHandle(this);
  if (given.encoding) this.setDefaultEncoding(given.encoding);
}

// Writes until everything is written: `step(left, done)` does a part of it.
function writeAll(stream, size, step, callback, retries = 0) {
  step(size, (error, count) => {
    let [failure, written] = [error, count];
    if (failure?.code === "EAGAIN") [failure, written] = [null, 0];
    if (stream.destroyed || failure) {
      callback(failure || codedError(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed"));
      return;
    }
    stream.bytesWritten += written;
    const left = size - written;
    const tries = written ? 0 : retries + 1;
    if (tries > MOST_RETRIES) callback(new Error("write failed"));
    else if (left > 0) writeAll(stream, left, step, callback, tries);
    else callback();
  });
}

function perform(stream, size, step, callback) {
  stream[isBusy] = true;
  writeAll(stream, size, step, (error) => {
    stream[isBusy] = false;
    callback(error);
    if (stream.destroyed) stream.emit(onIdle, error);
  });
  if (stream.pos !== undefined) stream.pos += size;
}

class Writing extends Writable {
  _construct(callback) {
    construct(this, oldOpen.write, callback);
  }

  _write(chunk, encoding, callback) {
    const end = this.pos === undefined ? undefined : this.pos + chunk.length;
    perform(this, chunk.length, (left, done) => {
      const offset = chunk.length - left;
      this[ops].write(this.fd, chunk, offset, left, end === undefined ? undefined : end - left, done);
    }, callback);
  }

  _writev(data, callback) {
    const chunks = data.map(({ chunk }) => chunk);
    const size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const end = this.pos === undefined ? undefined : this.pos + size;
    perform(this, size, (left, done) => {
      const rest = left === size ? chunks : [Buffer.concat(chunks).subarray(size - left)];
      this[ops].writev(this.fd, rest, end === undefined ? null : end - left, done);
    }, callback);
  }

  _destroy(error, callback) {
    destroy(this, error, callback);
  }

  close(callback = undefined) {
    if (typeof callback === "function") {
      if (this.closed) {
        nextTick(callback);
        return;
      }
      this.on("close", callback);
    }
    if (!this.autoClose) this.on("finish", this.destroy);
    this.end();
  }

  get autoClose() {
    return this._writableState.autoDestroy;
  }

  set autoClose(value) {
    this._writableState.autoDestroy = value;
  }

  get pending() {
    return this.fd === null;
  }
}
// Classes that older packages call on objects of their own, such as graceful-fs.
defineLegacyClass(ReadStream, Readable, Reading);
defineLegacyClass(WriteStream, Writable, Writing);
ReadStream.prototype.open = oldOpen.read;
WriteStream.prototype.open = oldOpen.write;
WriteStream.prototype.destroySoon = WriteStream.prototype.end;
