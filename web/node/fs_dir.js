// https://nodejs.org/api/fs.html#class-fsdir
import { queueMicrotask } from "../timers.js";
import { optionsOf, pathOf, requireInteger } from "./fs_arguments.js";
import { readdir } from "./fs_folders.js";
import { codedError, requireFunction } from "./errors.js";
import { systemError } from "./fs_tree.js";

const MADE = Symbol("made by opendir");

export class Dir {
  #entries;
  #isClosed = false;

  constructor(token, path, entries) {
    if (token !== MADE) throw codedError(TypeError, "ERR_MISSING_ARGS", 'The "handle" argument must be specified');
    Object.defineProperty(this, "path", { value: path, enumerable: true });
    this.#entries = entries;
  }

  #requireOpen() {
    if (this.#isClosed) throw codedError(Error, "ERR_DIR_CLOSED", "Directory handle was closed");
  }

  readSync() {
    this.#requireOpen();
    return this.#entries.shift() ?? null;
  }

  read(callback = undefined) {
    if (callback === undefined) return Promise.try(() => this.readSync());
    requireFunction(callback, "callback");
    const entry = this.readSync();
    queueMicrotask(() => callback(null, entry));
  }

  closeSync() {
    this.#requireOpen();
    this.#isClosed = true;
  }

  close(callback = undefined) {
    if (callback === undefined) return Promise.try(() => this.closeSync());
    requireFunction(callback, "callback");
    this.closeSync();
    queueMicrotask(() => callback(null));
  }

  async *entries() {
    try {
      for (let entry = this.readSync(); entry !== null; entry = this.readSync()) yield entry;
    } finally {
      if (!this.#isClosed) this.closeSync();
    }
  }

  [Symbol.asyncIterator]() {
    return this.entries();
  }

  [Symbol.dispose]() {
    if (!this.#isClosed) this.closeSync();
  }

  async [Symbol.asyncDispose]() {
    if (!this.#isClosed) this.closeSync();
  }
}

export function opendir(path, options = undefined) {
  const text = pathOf(path);
  const { encoding = "utf8", bufferSize = 32, recursive = false } = optionsOf(options, { encoding: "utf8" });
  requireInteger(bufferSize, "options.bufferSize", 1, 2 ** 32 - 1);
  let entries;
  try {
    entries = readdir(path, { encoding, recursive, withFileTypes: true });
  } catch (error) {
    throw error.syscall === "scandir" ? systemError(error.code, "opendir", text) : error;
  }
  return new Dir(MADE, text, entries);
}
