// https://nodejs.org/api/fs.html#class-filehandle
import { lazy } from "../internal/lazy.js";
import { ReadableStream } from "../streams/streams.js";
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import { codedError } from "./errors.js";
import { optionsOf } from "./fs_arguments.js";
import * as sync from "./fs_sync.js";
import { systemError } from "./fs_tree.js";

const MADE = Symbol("made by open");

export class FileHandle extends EventEmitter {
  #fd;

  constructor(token, fd) {
    super();
    if (token !== MADE) throw codedError(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor");
    this.#fd = fd;
  }

  get fd() {
    return this.#fd;
  }

  // -1 once it is closed.
  #open(syscall) {
    if (this.#fd !== -1) return this.#fd;
    throw Object.assign(systemError("EBADF", syscall), { message: "file closed" });
  }

  async appendFile(data, options = undefined) {
    return sync.appendFile(this.#open("write"), data, options);
  }

  async chmod(mode) {
    return sync.fchmod(this.#open("fchmod"), mode);
  }

  async chown(uid, gid) {
    return sync.fchown(this.#open("fchown"), uid, gid);
  }

  async close() {
    if (this.#fd === -1) return;
    const fd = this.#fd;
    this.#fd = -1;
    sync.close(fd);
    this.emit("close");
  }

  async datasync() {
    return sync.fdatasync(this.#open("fdatasync"));
  }

  async sync() {
    return sync.fsync(this.#open("fsync"));
  }

  async read(buffer, offset, length, position) {
    const fd = this.#open("read");
    let target = buffer;
    let from = offset;
    if (!ArrayBuffer.isView(buffer)) {
      const { buffer: given = Buffer.alloc(16_384), ...rest } = buffer ?? {};
      target = given;
      from = { offset: 0, position: null, ...rest };
    }
    return { bytesRead: sync.read(fd, target, from, length, position), buffer: target };
  }

  async readv(buffers, position = undefined) {
    return { bytesRead: sync.readv(this.#open("read"), buffers, position), buffers };
  }

  async readFile(options = undefined) {
    return sync.readFile(this.#open("read"), options);
  }

  readLines(options = undefined) {
    const stream = this.createReadStream(options);
    return (async function* () {
      let rest = "";
      for await (const piece of stream.setEncoding("utf8")) {
        const lines = (rest + piece).split(/\r?\n/);
        rest = lines.pop();
        yield* lines;
      }
      if (rest !== "") yield rest;
    })();
  }

  readableWebStream(options = undefined) {
    const fd = this.#open("read");
    const close = () => options?.autoClose && this.close();
    return new ReadableStream({
      type: "bytes",
      pull(controller) {
        const piece = Buffer.alloc(16_384);
        const count = sync.read(fd, piece, 0, piece.length, null);
        if (count > 0) {
          controller.enqueue(new Uint8Array(piece.buffer, piece.byteOffset, count));
          return;
        }
        controller.close();
        controller.byobRequest?.respond(0);
        close();
      },
      cancel: close,
    });
  }

  createReadStream(options = undefined) {
    return new (lazy("node/fs_streams.js").ReadStream)(undefined, { ...optionsOf(options), fd: this });
  }

  createWriteStream(options = undefined) {
    return new (lazy("node/fs_streams.js").WriteStream)(undefined, { ...optionsOf(options), fd: this });
  }

  async stat(options = undefined) {
    return sync.fstat(this.#open("fstat"), options);
  }

  async truncate(len = 0) {
    return sync.ftruncate(this.#open("ftruncate"), len);
  }

  async utimes(atime, mtime) {
    return sync.futimes(this.#open("futime"), atime, mtime);
  }

  async write(buffer, offset, length, position) {
    const bytesWritten = sync.write(this.#open("write"), buffer, offset, length, position);
    return { bytesWritten, buffer };
  }

  async writev(buffers, position = undefined) {
    return { bytesWritten: sync.writev(this.#open("write"), buffers, position), buffers };
  }

  async writeFile(data, options = undefined) {
    return sync.writeFile(this.#open("write"), data, options);
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

export async function open(path, flags = "r", mode = undefined) {
  return new FileHandle(MADE, sync.open(path, flags, mode));
}
