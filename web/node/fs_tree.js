// The files of node:fs, in memory: /bundle with the modules of the worker, /tmp of the running call, /dev.
//
// A node is a folder ({ kind: FOLDER, entries }), a file ({ kind: FILE, data, size }), a link ({ kind: LINK, target }) or a
// device ({ kind: DEVICE, name }). Each has `modified` (ms), a number (`ino`) and `isFixed`: it cannot be changed.
import { native } from "../internal/native.js";
import { wallClock as now } from "../internal/clock.js";

export const FOLDER = 2;
export const FILE = 1;
export const LINK = 3;
export const DEVICE = 6;

const MOST_NODES = 10_000; // of one /tmp; the memory of contents counts for the isolate
export const MOST_BYTES = 128 * 1024 * 1024; // of one file
const MOST_LINKS = 40;
const MOST_PATH = 4096;
const MOST_SEGMENTS = 48;

const MESSAGES = {
  EACCES: "permission denied",
  EBADF: "bad file descriptor",
  EEXIST: "file already exists",
  EFBIG: "File size limit exceeded",
  EINVAL: "invalid argument",
  EISDIR: "illegal operation on a directory",
  ELOOP: "too many symbolic links encountered",
  EMFILE: "too many open files",
  EMLINK: "too many links",
  ENAMETOOLONG: "name too long",
  ENOENT: "no such file or directory",
  ENOSPC: "no space left on device",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
  EPERM: "operation not permitted",
  EXDEV: "cross-device link not permitted",
};
const ERRNO = {
  EPERM: -1, ENOENT: -2, EBADF: -9, EACCES: -13, EEXIST: -17, EXDEV: -18, ENOTDIR: -20, EISDIR: -21, EINVAL: -22, EMFILE: -24,
  EFBIG: -27, ENOSPC: -28, EMLINK: -31, ENAMETOOLONG: -36, ENOTEMPTY: -39, ELOOP: -40,
};

/** https://nodejs.org/api/errors.html#common-system-errors */
export function systemError(code, syscall, path = undefined, dest = undefined, message = MESSAGES[code]) {
  const names = (path === undefined ? "" : ` '${path}'`) + (dest === undefined ? "" : ` -> '${dest}'`);
  const error = new Error(`${code}: ${message}, ${syscall}${names}`);
  error.errno = ERRNO[code];
  error.code = code;
  error.syscall = syscall;
  if (path !== undefined) error.path = path;
  if (dest !== undefined) error.dest = dest;
  return error;
}

/** Failures of functions that take two paths name both. */
export function between(syscall, from, to, run) {
  try {
    return run();
  } catch (error) {
    throw error?.syscall === undefined ? error : systemError(error.code, syscall, from, to);
  }
}

let lastNumber = 0;

function makeNode(kind, fields, isFixed = false) {
  return { kind, isFixed, ino: ++lastNumber, links: 1, modified: isFixed ? 0 : now(), ...fields };
}

export const makeFolder = (isFixed = false) => makeNode(FOLDER, { entries: new Map() }, isFixed);
export const makeFile = (data = new Uint8Array(0), isFixed = false) => makeNode(FILE, { data, size: data.length }, isFixed);
export const makeLink = (target) => makeNode(LINK, { target });

let bundle = null;

/** /bundle: made on first use. The content of a module is read when it is asked for. */
function bundleFolder() {
  if (bundle !== null) return bundle;
  bundle = makeFolder(true);
  for (const path of native.bundleFiles()) {
    const parts = path.split("/").filter((part) => part !== "" && part !== "." && part !== "..");
    let folder = bundle;
    for (const part of parts.slice(0, -1)) {
      if (!folder.entries.has(part)) folder.entries.set(part, makeFolder(true));
      folder = folder.entries.get(part);
      if (folder.kind !== FOLDER) break;
    }
    if (folder.kind !== FOLDER || parts.length === 0) continue;
    const file = makeFile(new Uint8Array(0), true);
    let data = null;
    const read = () => (data ??= new Uint8Array(native.bundleFile(path) ?? 0));
    Object.defineProperty(file, "data", { get: read });
    Object.defineProperty(file, "size", { get: () => read().length });
    folder.entries.set(parts.at(-1), file);
  }
  return bundle;
}

function deviceFolder() {
  const folder = makeFolder(true);
  for (const name of ["null", "zero", "full", "random"]) folder.entries.set(name, makeNode(DEVICE, { name }, true));
  return folder;
}

let devices = null;

/** The files that one call sees. */
export class FileSystem {
  #root = makeFolder(true);
  #nodes = 0;
  cwd = "/bundle";

  constructor() {
    devices ??= deviceFolder();
    this.#root.entries.set("bundle", bundleFolder());
    this.#root.entries.set("tmp", makeFolder());
    this.#root.entries.set("dev", devices);
  }

  partsOf(path, syscall) {
    if (path.length > MOST_PATH) throw systemError("ENAMETOOLONG", syscall, path, undefined, "File path is too long");
    const parts = [];
    for (const part of (path.startsWith("/") ? path : `${this.cwd}/${path}`).split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    if (parts.length > MOST_SEGMENTS) throw systemError("ENAMETOOLONG", syscall, path, undefined, "File path has too many segments");
    return parts;
  }

  /** Makes a folder the working directory. */
  enter(path) {
    const { node, parts } = path === "" ? {} : this.locate(path, "chdir");
    if (node === undefined) throw systemError("ENOENT", "chdir", path);
    if (node.kind !== FOLDER) throw systemError("ENOTDIR", "chdir", path);
    this.cwd = `/${parts.join("/")}`;
  }

  /** The node at a path, or undefined. The names on the way may be links; the last one is followed if `follow`. */
  look(path, syscall, follow = true) {
    return this.locate(path, syscall, follow).node;
  }

  find(path, syscall, follow = true) {
    const node = this.look(path, syscall, follow);
    if (node === undefined) throw systemError("ENOENT", syscall, path);
    return node;
  }

  /** Where a path leads: `{ folder, name, node, parts }`. `node` is undefined if only the last name is missing there. */
  locate(path, syscall, follow = true) {
    let rest = this.partsOf(path, syscall).reverse();
    const trail = []; // names and folders that lead to `folder`
    let folder = this.#root;
    let links = 0;
    if (rest.length === 0) return { folder: null, name: "", node: folder, parts: [] };
    for (;;) {
      const name = rest.pop();
      const node = folder.entries.get(name);
      const isLast = rest.length === 0;
      if (node?.kind === LINK && (follow || !isLast)) {
        if (++links > MOST_LINKS) throw systemError("ELOOP", syscall, path);
        const target = node.target.startsWith("/") ? node.target : `/${[...trail.map((step) => step.name), node.target].join("/")}`;
        rest = [...rest, ...this.partsOf(target, syscall).reverse()];
        trail.length = 0;
        folder = this.#root;
        if (rest.length === 0) return { folder: null, name: "", node: folder, parts: [] };
        continue;
      }
      if (isLast) return { folder, name, node, parts: [...trail.map((step) => step.name), name] };
      if (node === undefined) throw systemError("ENOENT", syscall, path);
      if (node.kind !== FOLDER) throw systemError("ENOTDIR", syscall, path);
      trail.push({ name, folder });
      folder = node;
    }
  }

  /** The folder and the name of something that is to be made, replaced or removed. */
  place(path, syscall) {
    const found = this.locate(path, syscall, false);
    if (found.folder === null || found.folder.isFixed) throw systemError(found.node === undefined || syscall !== "mkdir" ? "EPERM" : "EEXIST", syscall, path);
    return found;
  }

  add(folder, name, node, syscall, path) {
    if (this.#nodes >= MOST_NODES) throw systemError("ENOSPC", syscall, path);
    if (!folder.entries.has(name)) this.#nodes++;
    folder.entries.set(name, node);
    folder.modified = now();
  }

  remove(folder, name) {
    const node = folder.entries.get(name);
    folder.entries.delete(name);
    folder.modified = now();
    node.links--;
    this.#nodes -= countNodes(node);
  }
}

function countNodes(node) {
  if (node.kind !== FOLDER) return 1;
  let count = 1;
  for (const entry of node.entries.values()) count += countNodes(entry);
  return count;
}

/** Makes a file `size` bytes long. */
export function resize(file, size, syscall, path = undefined) {
  if (size > MOST_BYTES) throw systemError("EFBIG", syscall, path);
  if (size > file.data.length) {
    const room = new Uint8Array(Math.min(Math.max(size, file.data.length * 2, 256), MOST_BYTES));
    room.set(file.data.subarray(0, file.size));
    file.data = room;
  } else if (size < file.size) {
    file.data.fill(0, size, file.size);
  }
  file.size = size;
  file.modified = now();
}
