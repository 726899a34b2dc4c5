// The synchronous functions of node:fs on files and descriptors. Forms with callbacks and promises are derived from them.
import { Blob } from "../file/blob.js";
import { Buffer } from "./buffer.js";
import {
  accessMode, bytesOf, dataOf, descriptorOf, flagsOf, modeOf, named, optionsOf, partOf, pathOf, pathOrDescriptor, positionOf, requireBoolean,
  requireInteger, requireObject, timeOf, viewsOf,
} from "./fs_arguments.js";
import { constants } from "./fs_constants.js";
import { closeFile, entryOf, files, openFile, readInto, readRest, tree, writeFrom } from "./fs_open.js";
import { StatFs, Stats } from "./fs_stats.js";
import { between, FILE, FOLDER, LINK, makeLink, resize, systemError } from "./fs_tree.js";
import { invalidArgument, invalidValue } from "./errors.js";

// --- access and facts ---

export function access(path, mode = undefined) {
  const text = pathOf(path);
  const wanted = accessMode(mode);
  const node = tree().find(text, "access");
  if (wanted & constants.W_OK && node.isFixed && node.kind !== 6) throw systemError("EACCES", "access", text);
  if (wanted & constants.X_OK && node.kind === FILE) throw systemError("EACCES", "access", text);
}

export function exists(path) {
  try {
    access(path);
    return true;
  } catch {
    return false;
  }
}

function statOf(path, options, follow, syscall) {
  const text = pathOf(path);
  const { bigint = false, throwIfNoEntry = true } = optionsOf(options);
  requireBoolean(bigint, "options.bigint");
  requireBoolean(throwIfNoEntry, "options.throwIfNoEntry");
  let node;
  try {
    node = tree().look(text, syscall, follow);
  } catch (error) {
    if (throwIfNoEntry || (error.code !== "ENOENT" && error.code !== "ENOTDIR")) throw error;
  }
  if (node !== undefined) return new Stats(node, bigint);
  if (throwIfNoEntry) throw systemError("ENOENT", syscall, text);
  return undefined;
}

export const stat = (path, options = undefined) => statOf(path, options, true, "stat");
export const lstat = (path, options = undefined) => statOf(path, options, false, "lstat");

export function fstat(fd, options = undefined) {
  const number = descriptorOf(fd);
  const { bigint = false } = optionsOf(options);
  requireBoolean(bigint, "options.bigint");
  return new Stats(entryOf(number, "fstat").node, bigint);
}

export function statfs(path, options = undefined) {
  const text = pathOf(path);
  const { bigint = false } = optionsOf(options);
  requireBoolean(bigint, "options.bigint");
  tree().find(text, "statfs");
  return new StatFs(bigint);
}

// Permissions and owners cannot be changed. The arguments are checked, and that the file is there.
function requireMode(mode) {
  if (mode === undefined || mode === null) throw invalidArgument("mode", "of type number", mode);
  modeOf(mode);
}

const idOf = (id, name) => requireInteger(id, name, -1, 2 ** 32 - 1);

function changeNothing(path, syscall, follow) {
  tree().find(pathOf(path), syscall, follow);
}

export function chmod(path, mode) {
  pathOf(path);
  requireMode(mode);
  changeNothing(path, "chmod", true);
}

export function lchmod(path, mode) {
  pathOf(path);
  requireMode(mode);
  changeNothing(path, "lchmod", false);
}

export function fchmod(fd, mode) {
  const number = descriptorOf(fd);
  requireMode(mode);
  entryOf(number, "fchmod");
}

export function chown(path, uid, gid) {
  pathOf(path);
  idOf(uid, "uid");
  idOf(gid, "gid");
  changeNothing(path, "chown", true);
}

export function lchown(path, uid, gid) {
  pathOf(path);
  idOf(uid, "uid");
  idOf(gid, "gid");
  changeNothing(path, "lchown", false);
}

export function fchown(fd, uid, gid) {
  const number = descriptorOf(fd);
  idOf(uid, "uid");
  idOf(gid, "gid");
  entryOf(number, "fchown");
}

function setTime(node, atime, mtime) {
  timeOf(atime, "atime");
  const time = timeOf(mtime, "mtime");
  if (!node.isFixed) node.modified = time;
}

function utimesOf(path, atime, mtime, follow, syscall) {
  const text = pathOf(path);
  timeOf(atime, "atime");
  timeOf(mtime, "mtime");
  setTime(tree().find(text, syscall, follow), atime, mtime);
}

export const utimes = (path, atime, mtime) => utimesOf(path, atime, mtime, true, "utime");
export const lutimes = (path, atime, mtime) => utimesOf(path, atime, mtime, false, "lutime");

export function futimes(fd, atime, mtime) {
  const number = descriptorOf(fd);
  timeOf(atime, "atime");
  timeOf(mtime, "mtime");
  setTime(entryOf(number, "futime").node, atime, mtime);
}

// --- descriptors ---

export function open(path, flags = "r", mode = undefined) {
  const text = pathOf(path);
  const number = flagsOf(flags);
  modeOf(mode);
  return openFile(text, number);
}

export function close(fd) {
  closeFile(descriptorOf(fd));
}

export function fsync(fd) {
  entryOf(descriptorOf(fd), "fsync");
}

export function fdatasync(fd) {
  entryOf(descriptorOf(fd), "fdatasync");
}

export function ftruncate(fd, len = 0) {
  const number = descriptorOf(fd);
  const size = Math.max(0, requireInteger(len, "len"));
  const { node, flags } = entryOf(number, "ftruncate");
  if (node.kind !== FILE || !(flags & (constants.O_WRONLY | constants.O_RDWR))) throw systemError("EINVAL", "ftruncate");
  resize(node, size, "ftruncate");
}

export function truncate(path, len = 0) {
  if (typeof path === "number") return ftruncate(path, len);
  const text = pathOf(path);
  const size = Math.max(0, requireInteger(len, "len"));
  const fd = openFile(text, constants.O_RDWR);
  try {
    ftruncate(fd, size);
  } finally {
    closeFile(fd);
  }
}

/** `read(fd, buffer, offset, length, position)` or with an object of the last three. */
export function read(fd, buffer, ...rest) {
  const number = descriptorOf(fd);
  const bytes = bytesOf(buffer);
  let [offset, length, position] = rest;
  if (rest.length <= 1 || (typeof offset === "object" && offset !== null)) {
    if (offset !== undefined && offset !== null) requireObject(offset, "options");
    ({ offset = 0, length = bytes.length - offset, position = null } = offset ?? {});
  }
  const start = offset === undefined || offset === null ? 0 : requireInteger(offset, "offset", 0);
  const size = length === undefined ? bytes.length - start : Math.trunc(Number(length) || 0);
  const from = positionOf(position);
  if (size === 0) return 0;
  if (bytes.length === 0) throw invalidValue("buffer", buffer, "is empty and cannot be written");
  return readInto(number, partOf(bytes, start, size), from);
}

/** `write(fd, buffer, offset, length, position)`, or `write(fd, text, position, encoding)`. */
export function write(fd, buffer, offset = undefined, length = undefined, position = undefined) {
  const number = descriptorOf(fd);
  if (typeof buffer === "string") {
    return writeFrom(number, Buffer.from(buffer, Buffer.isEncoding(length) ? length : "utf8"), wholePosition(offset));
  }
  if (!ArrayBuffer.isView(buffer)) throw invalidArgument("buffer", "of type string or an instance of Buffer, TypedArray, or DataView", buffer);
  const bytes = bytesOf(buffer);
  if (typeof offset === "object" && offset !== null) ({ offset = 0, length = bytes.length - offset, position = null } = offset);
  return writeFrom(number, partOf(bytes, offset, typeof length === "number" ? length : undefined), wholePosition(position));
}

// Anything else means the current position.
const wholePosition = (position) => (Number.isSafeInteger(position) && position >= 0 ? position : null);

function overAll(fd, buffers, position, run) {
  const number = descriptorOf(fd);
  const views = viewsOf(buffers);
  let at = typeof position === "number" ? position : null;
  let total = 0;
  if (views.length === 0) {
    entryOf(number, run === readInto ? "read" : "write");
    if (run === readInto) throw systemError("EINVAL", "read");
  }
  for (const view of views) {
    const count = run(number, view, at);
    total += count;
    if (at !== null) at += count;
    if (count < view.length) break;
  }
  return total;
}

export const readv = (fd, buffers, position = undefined) => overAll(fd, buffers, position, readInto);
export const writev = (fd, buffers, position = undefined) => overAll(fd, buffers, position, writeFrom);

// --- whole files ---

function withFile(path, flags, run) {
  if (typeof path === "number") return run(descriptorOf(path));
  const fd = openFile(path, flags);
  try {
    return run(fd);
  } finally {
    files().open.delete(fd);
  }
}

export function readFile(path, options = undefined) {
  const { flag = "r", encoding } = optionsOf(options, { flag: "r" });
  const content = withFile(pathOrDescriptor(path), flagsOf(flag), readRest);
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return encoding ? buffer.toString(encoding) : buffer;
}

export function writeFile(path, data, options = undefined) {
  const { flag = "w", encoding = "utf8", mode = 0o666, flush = false } = optionsOf(options, { encoding: "utf8", mode: 0o666, flag: "w" });
  if (flush !== undefined && flush !== null) requireBoolean(flush, "options.flush");
  modeOf(mode);
  const target = pathOrDescriptor(path);
  const flags = flagsOf(flag);
  const bytes = dataOf(data, encoding);
  withFile(target, flags, (fd) => writeFrom(fd, bytes, null));
}

export function appendFile(path, data, options = undefined) {
  const given = optionsOf(options, { encoding: "utf8", mode: 0o666 });
  writeFile(path, data, { ...given, flag: given.flag ?? "a" });
}

export function copyFile(from, to, mode = 0) {
  const source = pathOf(from, "src");
  const target = pathOf(to, "dest");
  const chosen = accessMode(mode);
  between("copyfile", source, target, () => {
    const node = tree().find(source, "copyfile");
    if (node.kind === FOLDER) throw systemError("EISDIR", "copyfile");
    const old = tree().look(target, "copyfile");
    if (old !== undefined && chosen & constants.COPYFILE_EXCL) throw systemError("EEXIST", "copyfile");
    if (old === node) return;
    writeFile(target, node.kind === FILE ? node.data.slice(0, node.size) : new Uint8Array(0));
  });
}

// --- names ---

export function unlink(path) {
  const text = pathOf(path);
  const { folder, name, node } = tree().place(text, "unlink");
  if (node === undefined) throw systemError("ENOENT", "unlink", text);
  if (node.kind === FOLDER) throw systemError("EISDIR", "unlink", text);
  tree().remove(folder, name);
}

export function rename(oldPath, newPath) {
  const from = pathOf(oldPath, "oldPath");
  const to = pathOf(newPath, "newPath");
  between("rename", from, to, () => {
    const source = tree().place(from, "rename");
    if (source.node === undefined) throw systemError("ENOENT", "rename");
    move(source, tree().place(to, "rename"));
  });
}

function move(source, target) {
  const { node } = source;
  if (target.node === node) return;
  if (node.kind === FOLDER && target.parts.slice(0, source.parts.length).join("/") === source.parts.join("/")) {
    throw systemError("EINVAL", "rename");
  }
  if (target.node !== undefined) {
    if (target.node.kind === FOLDER && node.kind !== FOLDER) throw systemError("EISDIR", "rename");
    if (target.node.kind !== FOLDER && node.kind === FOLDER) throw systemError("ENOTDIR", "rename");
    if (target.node.kind === FOLDER && target.node.entries.size > 0) throw systemError("ENOTEMPTY", "rename");
    tree().remove(target.folder, target.name);
  }
  tree().remove(source.folder, source.name);
  node.links++;
  tree().add(target.folder, target.name, node, "rename");
}

export function link(existingPath, newPath) {
  const from = pathOf(existingPath, "existingPath");
  const to = pathOf(newPath, "newPath");
  between("link", from, to, () => {
    const node = tree().find(from, "link", false);
    if (node.kind === FOLDER || node.isFixed) throw systemError("EPERM", "link");
    const { folder, name, node: old } = tree().place(to, "link");
    if (old !== undefined) throw systemError("EEXIST", "link");
    tree().add(folder, name, node, "link", to);
    node.links++;
  });
}

export function symlink(target, path, type = null) {
  if (type !== null && type !== undefined && !["dir", "file", "junction"].includes(type)) {
    throw invalidValue("type", type, "must be one of: 'dir', 'file', 'junction', null, undefined");
  }
  const to = pathOf(target, "target");
  const text = pathOf(path);
  between("symlink", to, text, () => {
    const { folder, name, node } = tree().place(text, "symlink");
    if (node !== undefined) throw systemError("EEXIST", "symlink");
    tree().add(folder, name, makeLink(to), "symlink", text);
  });
}

export function readlink(path, options = undefined) {
  const { encoding } = optionsOf(options);
  const text = pathOf(path);
  const node = tree().find(text, "readlink", false);
  if (node.kind !== LINK) throw systemError("EINVAL", "readlink", text);
  return named(node.target, encoding);
}

export function realpath(path, options = undefined) {
  const { encoding } = optionsOf(options);
  const text = pathOf(path);
  const { node, parts } = tree().locate(text, "lstat");
  if (node === undefined) throw systemError("ENOENT", "lstat", text);
  return named(`/${parts.join("/")}`, encoding);
}

/** https://nodejs.org/api/fs.html#fsopenasblobpath-options */
export function openAsBlob(path, options = {}) {
  requireObject(options, "options");
  const { type = "" } = options;
  if (typeof type !== "string") throw invalidArgument("options.type", "of type string", type);
  return new Blob([readFile(pathOf(path))], { type });
}
