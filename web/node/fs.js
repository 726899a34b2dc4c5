// https://nodejs.org/api/fs.html: the most used functions, on files in memory (fs_files.js). The host's files are out of reach.
import { lazy } from "../internal/lazy.js";
import { queueMicrotask } from "../timers.js";
import { Buffer } from "./buffer.js";
import { codedError, requireFunction } from "./errors.js";
import { find, isFolder, makeFolder, move, remove, systemError, write } from "./fs_files.js";
import { unavailable } from "./unavailable.js";

const optionsOf = (options) => (typeof options === "string" ? { encoding: options } : (options ?? {}));

export class Stats {
  #isFolder;

  constructor(node) {
    this.#isFolder = isFolder(node);
    this.size = this.#isFolder ? 0 : node.content.length;
    this.mode = this.#isFolder ? 0o40777 : 0o100666;
    this.mtimeMs = this.atimeMs = this.ctimeMs = this.birthtimeMs = node.modified;
    this.mtime = this.atime = this.ctime = this.birthtime = new Date(node.modified);
  }

  isFile() {
    return !this.#isFolder;
  }

  isDirectory() {
    return this.#isFolder;
  }

  isSymbolicLink() {
    return false;
  }
}

export class Dirent {
  #stats;

  constructor(name, parentPath, node) {
    this.name = name;
    this.parentPath = parentPath;
    this.#stats = new Stats(node);
  }

  isFile() {
    return this.#stats.isFile();
  }

  isDirectory() {
    return this.#stats.isDirectory();
  }

  isSymbolicLink() {
    return false;
  }
}

// The synchronous functions. The forms with callbacks and promises are derived from them.
const operations = {
  access(path) {
    find(path, "access");
  },
  appendFile(path, data, options = undefined) {
    write(path, toBytes(data, options), { append: true });
  },
  copyFile(from, to) {
    write(to, operations.readFile(from), {});
  },
  lstat: (path, options = undefined) => operations.stat(path, options),
  mkdir(path, options = undefined) {
    makeFolder(path, optionsOf(options).recursive === true);
  },
  mkdtemp(prefix) {
    const path = `${prefix}${Math.random().toString(36).slice(2, 8).padEnd(6, "x")}`;
    makeFolder(path, false);
    return path;
  },
  readdir(path, options = undefined) {
    const node = find(path, "scandir");
    if (!isFolder(node)) throw systemError("ENOTDIR", "scandir", path);
    const names = [...node.content.keys()].sort();
    return optionsOf(options).withFileTypes ? names.map((name) => new Dirent(name, `${path}`, node.content.get(name))) : names;
  },
  readFile(path, options = undefined) {
    const node = find(path, "open");
    if (isFolder(node)) throw systemError("EISDIR", "read", path);
    const { encoding } = optionsOf(options);
    return encoding === undefined || encoding === null ? Buffer.from(node.content) : node.content.toString(encoding);
  },
  realpath: (path) => (find(path, "realpath"), `${path}`),
  rename: (from, to) => move(from, to),
  rm(path, options = undefined) {
    const { recursive = false, force = false } = optionsOf(options);
    remove(path, "rm", { folders: recursive, recursive, force });
  },
  rmdir(path) {
    remove(path, "rmdir", { folders: true });
  },
  stat(path, options = undefined) {
    if (optionsOf(options).throwIfNoEntry === false && !existsSync(path)) return undefined;
    return new Stats(find(path, "stat"));
  },
  unlink(path) {
    remove(path, "unlink", {});
  },
  writeFile(path, data, options = undefined) {
    const { flag = "w" } = optionsOf(options);
    write(path, toBytes(data, options), { append: flag.startsWith("a"), exclusive: flag.includes("x") });
  },
};

function toBytes(data, options) {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (typeof data === "string") return Buffer.from(data, optionsOf(options).encoding ?? "utf8");
  throw codedError(TypeError, "ERR_INVALID_ARG_TYPE", 'The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView.');
}

function withCallback(run) {
  return (...args) => {
    const callback = args.pop();
    requireFunction(callback, "callback");
    Promise.try(() => run(...args)).then((result) => callback(null, result), callback);
  };
}

export const promises = Object.fromEntries(Object.entries(operations).map(([name, run]) => [name, async (...args) => run(...args)]));

export const {
  access: accessSync, appendFile: appendFileSync, copyFile: copyFileSync, lstat: lstatSync, mkdir: mkdirSync, mkdtemp: mkdtempSync,
  readdir: readdirSync, readFile: readFileSync, realpath: realpathSync, rename: renameSync, rm: rmSync, rmdir: rmdirSync, stat: statSync,
  unlink: unlinkSync, writeFile: writeFileSync,
} = operations;

export const {
  access, appendFile, copyFile, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, rmdir, stat, unlink, writeFile,
} = Object.fromEntries(Object.entries(operations).map(([name, run]) => [name, withCallback(run)]));

export function existsSync(path) {
  try {
    find(path, "access");
    return true;
  } catch {
    return false;
  }
}

export function exists(path, callback) {
  queueMicrotask(() => callback(existsSync(path)));
}

export function createReadStream(path, options = undefined) {
  const { Readable } = lazy("node/stream.js");
  return Readable.from((async function* () {
    yield operations.readFile(path, options);
  })());
}

export function createWriteStream(path, options = undefined) {
  const { Writable } = lazy("node/stream.js");
  let flag = optionsOf(options).flags ?? "w";
  return new Writable({
    write(chunk, encoding, callback) {
      Promise.try(() => operations.writeFile(path, chunk, { flag })).then(() => ((flag = "a"), callback()), callback);
    },
  });
}

export const constants = { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, COPYFILE_EXCL: 1 };
promises.constants = constants;

export const { open, openSync, close, closeSync, read, readSync, symlink, symlinkSync, watch, watchFile } = unavailable("fs", [
  "open", "openSync", "close", "closeSync", "read", "readSync", "symlink", "symlinkSync", "watch", "watchFile",
]);
