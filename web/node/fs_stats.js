// https://nodejs.org/api/fs.html#class-fsstats, Dirent and StatFs.
import { constants } from "./fs_constants.js";
import { DEVICE, FILE, FOLDER, LINK } from "./fs_tree.js";

const MODES = { [FILE]: constants.S_IFREG, [FOLDER]: constants.S_IFDIR, [LINK]: constants.S_IFLNK, [DEVICE]: constants.S_IFCHR };
const BLOCK = 4096;

function permissions(node) {
  if (node.kind === LINK) return 0o777;
  if (node.kind === DEVICE) return 0o666;
  if (node.kind === FOLDER) return node.isFixed ? 0o555 : 0o777;
  return node.isFixed ? 0o444 : 0o666;
}

function sizeOf(node) {
  if (node.kind === FILE) return node.size;
  return node.kind === LINK ? node.target.length : 0;
}

class Kinds {
  isFile() {
    return isKind(this, constants.S_IFREG);
  }

  isDirectory() {
    return isKind(this, constants.S_IFDIR);
  }

  isSymbolicLink() {
    return isKind(this, constants.S_IFLNK);
  }

  isCharacterDevice() {
    return isKind(this, constants.S_IFCHR);
  }

  isBlockDevice() {
    return false;
  }

  isFIFO() {
    return false;
  }

  isSocket() {
    return false;
  }
}

const isKind = (stats, kind) => (Number(stats.mode) & constants.S_IFMT) === kind;

const TIMES = ["atime", "mtime", "ctime", "birthtime"];

export class Stats extends Kinds {
  constructor(node, asBigInt = false) {
    super();
    const number = asBigInt ? BigInt : (value) => value;
    const size = sizeOf(node);
    this.dev = number(0);
    this.mode = number(MODES[node.kind] | permissions(node));
    this.nlink = number(node.links);
    this.uid = number(0);
    this.gid = number(0);
    this.rdev = number(0);
    this.blksize = number(BLOCK);
    this.ino = number(node.ino);
    this.size = number(size);
    this.blocks = number(Math.ceil(size / 512));
    const at = Math.floor(node.modified);
    for (const name of TIMES) this[`${name}Ms`] = number(at);
    if (asBigInt) for (const name of TIMES) this[`${name}Ns`] = BigInt(at) * 1_000_000n;
    for (const name of TIMES) this[name] = new Date(at);
  }
}

export class StatFs {
  constructor(asBigInt) {
    for (const name of ["type", "bsize", "frsize", "blocks", "bfree", "bavail", "files", "ffree"]) this[name] = asBigInt ? 0n : 0;
  }
}

const TYPES = { [FILE]: 1, [FOLDER]: 2, [LINK]: 3, [DEVICE]: 6 };

export class Dirent {
  #type;

  constructor(name, parentPath, node) {
    this.name = name;
    this.parentPath = parentPath;
    this.#type = TYPES[node.kind];
  }

  isFile() {
    return this.#type === constants.UV_DIRENT_FILE;
  }

  isDirectory() {
    return this.#type === constants.UV_DIRENT_DIR;
  }

  isSymbolicLink() {
    return this.#type === constants.UV_DIRENT_LINK;
  }

  isCharacterDevice() {
    return this.#type === constants.UV_DIRENT_CHAR;
  }

  isBlockDevice() {
    return false;
  }

  isFIFO() {
    return false;
  }

  isSocket() {
    return false;
  }
}
