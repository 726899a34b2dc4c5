// https://nodejs.org/api/fs.html#promises-api
import { Buffer } from "./buffer.js";
import { AbortError, codedError, invalidArgument } from "./errors.js";
import { constants } from "./fs_constants.js";
import { opendir } from "./fs_dir.js";
import * as folders from "./fs_folders.js";
import { asPromise } from "./fs_forms.js";
import { FileHandle, open } from "./fs_handle.js";
import * as sync from "./fs_sync.js";

const NAMES = [
  "access", "chmod", "chown", "copyFile", "lchmod", "lchown", "link", "lstat", "lutimes", "readlink", "realpath", "rename", "stat", "statfs",
  "symlink", "truncate", "unlink", "utimes",
];
const FOLDERS = ["cp", "mkdir", "mkdtemp", "readdir", "rm", "rmdir"];

// A FileHandle stands for its descriptor.
const target = (path) => (path instanceof FileHandle ? path.fd : path);

function checkSignal(options) {
  if (options?.signal === undefined) return;
  if (typeof options.signal !== "object" || !("aborted" in options.signal)) throw invalidArgument("options.signal", "an instance of AbortSignal", options.signal);
  if (options.signal.aborted) throw new AbortError(options.signal);
}

async function readFile(path, options = undefined) {
  checkSignal(options);
  return sync.readFile(target(path), options);
}

async function writeFile(path, data, options = undefined) {
  checkSignal(options);
  const isIterable = typeof data === "object" && data !== null && !ArrayBuffer.isView(data) && (Symbol.iterator in data || Symbol.asyncIterator in data);
  if (!isIterable) return sync.writeFile(target(path), data, options);
  const encoding = typeof options === "string" ? options : options?.encoding;
  const pieces = [];
  for await (const piece of data) pieces.push(typeof piece === "string" ? Buffer.from(piece, encoding ?? "utf8") : piece);
  checkSignal(options);
  return sync.writeFile(target(path), Buffer.concat(pieces), options);
}

async function appendFile(path, data, options = undefined) {
  return sync.appendFile(target(path), data, options);
}

async function mkdtempDisposable(prefix, options = undefined) {
  const { path, remove } = folders.mkdtempDisposable(prefix, options);
  const removed = async () => remove();
  return { path, remove: removed, [Symbol.asyncDispose]: removed };
}

async function* glob(pattern, options = undefined) {
  yield* folders.glob(pattern, options);
}

function watch() {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The fs.promises.watch method is not implemented");
}

export const promises = {
  ...Object.fromEntries(NAMES.map((name) => [name, asPromise(sync[name])])),
  ...Object.fromEntries(FOLDERS.map((name) => [name, asPromise(folders[name])])),
  appendFile, constants, glob, mkdtempDisposable, open, opendir: asPromise(opendir), readFile, watch, writeFile,
};
