// https://nodejs.org/api/fs.html, on files in memory (fs_tree.js). The host's files are out of reach.
import { lazy } from "../internal/lazy.js";
import { queueMicrotask } from "../timers.js";
import { codedError, requireFunction } from "./errors.js";
import { pathOf, timeOf } from "./fs_arguments.js";
import { constants } from "./fs_constants.js";
import { Dir, opendir as openDir } from "./fs_dir.js";
import * as folders from "./fs_folders.js";
import { withBufferCallback, withCallback } from "./fs_forms.js";
import { promises } from "./fs_promises.js";
import { Dirent, Stats } from "./fs_stats.js";
import * as sync from "./fs_sync.js";

export const {
  access: accessSync, appendFile: appendFileSync, chmod: chmodSync, chown: chownSync, close: closeSync, copyFile: copyFileSync,
  exists: existsSync, fchmod: fchmodSync, fchown: fchownSync, fdatasync: fdatasyncSync, fstat: fstatSync, fsync: fsyncSync,
  ftruncate: ftruncateSync, futimes: futimesSync, lchmod: lchmodSync, lchown: lchownSync, link: linkSync, lstat: lstatSync,
  lutimes: lutimesSync, open: openSync, openAsBlob, read: readSync, readFile: readFileSync, readlink: readlinkSync, readv: readvSync,
  realpath: realpathSync, rename: renameSync, stat: statSync, statfs: statfsSync, symlink: symlinkSync, truncate: truncateSync,
  unlink: unlinkSync, utimes: utimesSync, write: writeSync, writeFile: writeFileSync, writev: writevSync,
} = sync;
export const {
  cp: cpSync, glob: globSync, mkdir: mkdirSync, mkdtemp: mkdtempSync, mkdtempDisposable: mkdtempDisposableSync, readdir: readdirSync, rm: rmSync,
  rmdir: rmdirSync,
} = folders;
export const opendirSync = openDir;
realpathSync.native = realpathSync;

export const {
  access, appendFile, chmod, chown, copyFile, fchmod, fchown, fdatasync, fstat, fsync, ftruncate, futimes, lchmod, lchown, link, lstat, lutimes,
  open, readFile, readlink, realpath, rename, stat, statfs, symlink, truncate, unlink, utimes, writeFile,
} = Object.fromEntries(Object.entries(sync).map(([name, run]) => [name, withCallback(run)]));
export const { cp, glob, mkdir, mkdtemp, readdir, rm, rmdir } = Object.fromEntries(Object.entries(folders).map(([name, run]) => [name, withCallback(run)]));
export const opendir = withCallback(openDir);
realpath.native = realpath;

export const read = withBufferCallback(sync.read, ["bytesRead", "buffer"]);
export const write = withBufferCallback(sync.write, ["bytesWritten", "buffer"]);
export const readv = withBufferCallback(sync.readv, ["bytesRead", "buffers"]);
export const writev = withBufferCallback(sync.writev, ["bytesWritten", "buffers"]);

/** A closing without a callback throws its failure. */
export function close(fd, callback = undefined) {
  if (callback !== undefined) requireFunction(callback, "cb");
  withCallback(sync.close)(fd, callback ?? ((error) => {
    if (error) throw error;
  }));
}

export function exists(path, callback) {
  requireFunction(callback, "cb");
  const found = existsSync(path);
  queueMicrotask(() => callback(found));
}

Object.defineProperty(exists, Symbol.for("nodejs.util.promisify.custom"), { value: async (path) => existsSync(path) });

export function createReadStream(path, options = undefined) {
  return new (lazy("node/fs_streams.js").ReadStream)(path, options);
}

export function createWriteStream(path, options = undefined) {
  return new (lazy("node/fs_streams.js").WriteStream)(path, options);
}

function missing(name) {
  return function (path) {
    if (path !== undefined) pathOf(path, "filename");
    throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The fs.${name} method is not implemented`);
  };
}

export const watch = missing("watch");
export const watchFile = missing("watchFile");
export const unwatchFile = missing("unwatchFile");
export const _toUnixTimestamp = (time) => timeOf(time) / 1000;
export const { F_OK, R_OK, W_OK, X_OK } = constants;

// The classes need node:stream, which is large: it is loaded with their first use, not with the import.
function deferred(name) {
  const real = () => lazy("node/fs_streams.js")[name];
  return new Proxy(function () {}, {
    apply: (target, self, args) => Reflect.apply(real(), self, args),
    construct: (target, args, made) => Reflect.construct(real(), args, made === exported[name] ? real() : made),
    get: (target, key) => real()[key],
    getPrototypeOf: () => Object.getPrototypeOf(real()),
  });
}

const exported = { ReadStream: deferred("ReadStream"), WriteStream: deferred("WriteStream") };
export const { ReadStream, WriteStream } = exported;
export { ReadStream as FileReadStream, WriteStream as FileWriteStream };

export { constants, Dir, Dirent, promises, Stats };
