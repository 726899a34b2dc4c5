// Open files: descriptors, reading and writing. Files and descriptors belong to the running call, or to the object it runs in.
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { runningCall } from "../worker/call.js";
import { constants } from "./fs_constants.js";
import { DEVICE, FILE, FileSystem, FOLDER, LINK, makeFile, resize, systemError } from "./fs_tree.js";

const FIRST = 3; // 0, 1 and 2 are streams of a process
const MOST_OPEN = 4096;

/** Files and open descriptors of a call. */
class Files {
  tree = new FileSystem();
  open = new Map(); // descriptor -> { node, flags, position, path }
  last = FIRST;
}

let outside = { id: undefined, files: null }; // of top-level code, and of code whose call is over

export function files() {
  const id = callOf(native.getAsyncContext());
  const call = id === undefined ? undefined : runningCall(id);
  if (call !== undefined) {
    const owner = call.owner ?? call;
    owner.files ??= new Files();
    return owner.files;
  }
  if (outside.files === null || outside.id !== id) outside = { id, files: new Files() };
  return outside.files;
}

export const tree = () => files().tree;

export function openFile(path, flags) {
  const { tree, open } = files();
  const wantsWrite = (flags & (constants.O_WRONLY | constants.O_RDWR)) !== 0;
  const follow = !(flags & constants.O_NOFOLLOW);
  const { folder, name, node: found } = tree.locate(path, "open", follow);
  let node = found;
  if (node === undefined) {
    if (!(flags & constants.O_CREAT)) throw systemError("ENOENT", "open", path);
    if (folder.isFixed) throw systemError("EPERM", "open", path);
    node = makeFile();
    tree.add(folder, name, node, "open", path);
  } else {
    if (flags & constants.O_CREAT && flags & constants.O_EXCL) throw systemError("EEXIST", "open", path);
    if (node.kind === LINK) throw systemError("ELOOP", "open", path);
    if (node.kind === FOLDER && wantsWrite) throw systemError("EISDIR", "open", path);
    if (node.kind !== FOLDER && flags & constants.O_DIRECTORY) throw systemError("ENOTDIR", "open", path);
    if (node.kind === FILE && node.isFixed && wantsWrite) throw systemError("EPERM", "open", path);
    if (flags & constants.O_TRUNC && wantsWrite && node.kind === FILE) resize(node, 0, "open", path);
  }
  if (open.size >= MOST_OPEN) throw systemError("EMFILE", "open", path);
  let fd = FIRST;
  while (open.has(fd)) fd++;
  open.set(fd, { node, flags, position: 0, path });
  return fd;
}

export function entryOf(fd, syscall) {
  const entry = files().open.get(fd);
  if (entry === undefined) throw systemError("EBADF", syscall);
  return entry;
}

export function closeFile(fd) {
  entryOf(fd, "close");
  files().open.delete(fd);
}

function readDevice({ name }, bytes) {
  if (name === "null") return 0;
  if (name === "random") for (let at = 0; at < bytes.length; at += 65_536) native.fillRandom(bytes.subarray(at, at + 65_536));
  else bytes.fill(0);
  return bytes.length;
}

/** Reads into `bytes` from a position, or from the current one if it is null. Returns the number of bytes. */
export function readInto(fd, bytes, position) {
  const entry = entryOf(fd, "read");
  const { node, flags } = entry;
  if (flags & constants.O_WRONLY) throw systemError("EBADF", "read");
  if (node.kind === FOLDER) throw systemError("EISDIR", "read");
  if (node.kind === DEVICE) return readDevice(node, bytes);
  const from = position ?? entry.position;
  const count = Math.max(0, Math.min(bytes.length, node.size - from));
  bytes.set(node.data.subarray(from, from + count));
  if (position === null) entry.position = from + count;
  return count;
}

export function writeFrom(fd, bytes, position) {
  const entry = entryOf(fd, "write");
  const { node, flags } = entry;
  if (!(flags & (constants.O_WRONLY | constants.O_RDWR))) throw systemError("EBADF", "write");
  if (node.kind === DEVICE) {
    if (node.name === "full") throw systemError("ENOSPC", "write");
    return bytes.length;
  }
  const from = flags & constants.O_APPEND ? node.size : (position ?? entry.position);
  if (bytes.length > 0) {
    if (from + bytes.length > node.size) resize(node, from + bytes.length, "write");
    else resize(node, node.size, "write");
    node.data.set(bytes, from);
  }
  if (position === null || flags & constants.O_APPEND) entry.position = from + bytes.length;
  return bytes.length;
}

/** All that a descriptor has from its position on. */
export function readRest(fd) {
  const entry = entryOf(fd, "read");
  if (entry.flags & constants.O_WRONLY) throw systemError("EBADF", "read");
  if (entry.node.kind === FOLDER) throw systemError("EISDIR", "read");
  if (entry.node.kind === DEVICE) {
    if (entry.node.name === "null") return new Uint8Array(0);
    throw systemError("EINVAL", "read", entry.path, undefined, "a device without an end cannot be read as a whole");
  }
  const rest = entry.node.data.slice(entry.position, entry.node.size);
  entry.position = Math.max(entry.position, entry.node.size);
  return rest;
}
