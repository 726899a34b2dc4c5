// process.stdin, stdout and stderr: what is written goes to the log of the worker; nothing can be read. They have the methods of
// streams without the code of node:stream, because node:process is loaded more often.
import { console } from "../console.js";
import { TextDecoder } from "../encoding/text_decoder.js";
import { native } from "../internal/native.js";
import { codedError } from "./errors.js";
import { EventEmitter } from "./events.js";

const { error, log } = console;

class Stream extends EventEmitter {
  destroyed = false;

  constructor(fd) {
    super();
    this.fd = fd;
  }

  destroy() {
    this.destroyed = true;
    return this;
  }

  setEncoding() {
    return this;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }
}

class LogStream extends Stream {
  writable = true;
  writableLength = 0;
  writableHighWaterMark = 16384;
  #print;

  constructor(fd, print) {
    super(fd);
    this.#print = print;
  }

  write(chunk, encoding = undefined, callback = encoding) {
    if (typeof chunk !== "string" && !ArrayBuffer.isView(chunk)) {
      throw codedError(TypeError, "ERR_INVALID_ARG_TYPE", 'The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView.');
    }
    const text = typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
    this.#print(text.replace(/\n$/, ""));
    if (typeof callback === "function") native.enqueueMicrotask(callback);
    return true;
  }

  end(chunk = undefined, encoding = undefined, callback = undefined) {
    if (chunk !== undefined && chunk !== null && typeof chunk !== "function") this.write(chunk, encoding);
    const done = [chunk, encoding, callback].find((each) => typeof each === "function");
    if (done !== undefined) native.enqueueMicrotask(done);
    return this;
  }

  cork() {}

  uncork() {}
}

class EmptyStream extends Stream {
  readable = true;

  read() {
    return null;
  }

  resume() {
    native.enqueueMicrotask(() => this.emit("end"));
    return this;
  }

  pause() {
    return this;
  }

  pipe(destination) {
    this.resume();
    return destination;
  }

  async *[Symbol.asyncIterator]() {}
}

export const stdin = new EmptyStream(0);
export const stdout = new LogStream(1, (text) => log(text));
export const stderr = new LogStream(2, (text) => error(text));
