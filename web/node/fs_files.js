// The files of node:fs: the folder /tmp in memory, which starts empty and ends with the isolate.
import { URL } from "../url/url.js";
import { Buffer } from "./buffer.js";

const MESSAGES = {
  EACCES: "permission denied",
  EEXIST: "file already exists",
  EISDIR: "illegal operation on a directory",
  ENOENT: "no such file or directory",
  ENOSPC: "no space left on device",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
  EPERM: "operation not permitted",
};
const ERRNO = { EPERM: -1, ENOENT: -2, EACCES: -13, EEXIST: -17, ENOTDIR: -20, EISDIR: -21, ENOSPC: -28, ENOTEMPTY: -39 };
const MOST_FILES = 10_000;

/** https://nodejs.org/api/errors.html#common-system-errors */
export function systemError(code, syscall, path) {
  const error = new Error(`${code}: ${MESSAGES[code]}, ${syscall} '${path}'`);
  return Object.assign(error, { errno: ERRNO[code], code, syscall, path });
}

const makeNode = (content) => ({ content, modified: Date.now() }); // content: a Buffer, or a Map of names in a folder
const root = makeNode(new Map([["tmp", makeNode(new Map())]]));

export const isFolder = (node) => node.content instanceof Map;

function partsOf(path, syscall) {
  const text = path instanceof URL ? decodeURIComponent(path.pathname) : ArrayBuffer.isView(path) ? Buffer.from(path).toString() : path;
  if (typeof text !== "string" || text.includes("\0")) {
    const error = new TypeError(`The "path" argument must be a string without null bytes, or an instance of Buffer or URL, for ${syscall}.`);
    throw Object.assign(error, { code: "ERR_INVALID_ARG_VALUE" });
  }
  const parts = [];
  for (const part of text.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

function walk(parts, syscall, path) {
  let node = root;
  for (const part of parts) {
    if (!isFolder(node)) throw systemError("ENOTDIR", syscall, path);
    node = node.content.get(part);
    if (node === undefined) throw systemError("ENOENT", syscall, path);
  }
  return node;
}

export function find(path, syscall) {
  return walk(partsOf(path, syscall), syscall, path);
}

/** The folder that contains a path, and its last name. Only paths in /tmp can be changed. */
function place(path, syscall) {
  const parts = partsOf(path, syscall);
  if (parts[0] !== "tmp" || parts.length < 2) throw systemError("EACCES", syscall, path);
  const folder = walk(parts.slice(0, -1), syscall, path);
  if (!isFolder(folder)) throw systemError("ENOTDIR", syscall, path);
  return { folder, name: parts.at(-1) };
}

function add(folder, name, content, path) {
  if (folder.content.size >= MOST_FILES) throw systemError("ENOSPC", "open", path);
  folder.content.set(name, makeNode(content));
  folder.modified = Date.now();
}

export function write(path, bytes, { append, exclusive }) {
  const { folder, name } = place(path, "open");
  const old = folder.content.get(name);
  if (old !== undefined && isFolder(old)) throw systemError("EISDIR", "open", path);
  if (old !== undefined && exclusive) throw systemError("EEXIST", "open", path);
  add(folder, name, append && old !== undefined ? Buffer.concat([old.content, bytes]) : Buffer.from(bytes), path);
}

export function makeFolder(path, recursive) {
  const parts = partsOf(path, "mkdir");
  if (recursive) for (let depth = 2; depth < parts.length; depth++) makeFolderIfMissing(`/${parts.slice(0, depth).join("/")}`);
  const { folder, name } = parts.join("/") === "tmp" ? { folder: root, name: "tmp" } : place(path, "mkdir");
  if (!folder.content.has(name)) add(folder, name, new Map(), path);
  else if (!recursive || !isFolder(folder.content.get(name))) throw systemError("EEXIST", "mkdir", path);
}

function makeFolderIfMissing(path) {
  const { folder, name } = place(path, "mkdir");
  if (!folder.content.has(name)) add(folder, name, new Map(), path);
}

export function remove(path, syscall, { folders, recursive, force }) {
  const { folder, name } = place(path, syscall);
  const node = folder.content.get(name);
  if (node === undefined) {
    if (force) return;
    throw systemError("ENOENT", syscall, path);
  }
  if (isFolder(node)) {
    if (!folders) throw systemError(syscall === "unlink" ? "EPERM" : "EISDIR", syscall, path);
    if (!recursive && node.content.size > 0) throw systemError("ENOTEMPTY", syscall, path);
  } else if (syscall === "rmdir") {
    throw systemError("ENOTDIR", syscall, path);
  }
  folder.content.delete(name);
}

export function move(from, to) {
  const source = place(from, "rename");
  const node = find(from, "rename");
  const target = place(to, "rename");
  target.folder.content.set(target.name, node);
  source.folder.content.delete(source.name);
}
