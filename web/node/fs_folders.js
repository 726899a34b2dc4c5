// The synchronous functions of node:fs on folders and trees of files.
import { cwd as currentFolder } from "./cwd.js";
import { native } from "../internal/native.js";
import { globToRegExp } from "./fs_glob.js";
import { named, modeOf, optionsOf, pathOf, requireBoolean, requireInteger, requireObject } from "./fs_arguments.js";
import { constants } from "./fs_constants.js";
import { tree } from "./fs_open.js";
import { Dirent } from "./fs_stats.js";
import { copyFile, symlink } from "./fs_sync.js";
import { FILE, FOLDER, LINK, makeFolder, systemError } from "./fs_tree.js";
import { codedError, invalidArgument } from "./errors.js";

/** The names in a folder, sorted as by Node. Those of the root are in Cloudflare's order: bundle, tmp, dev. */
function namesIn(folder) {
  const names = [...folder.entries.keys()];
  return folder.entries.has("bundle") && folder.isFixed ? names : names.sort();
}

export function mkdir(path, options = undefined) {
  const isMode = typeof options === "number" || typeof options === "string";
  const { recursive = false, mode = 0o777 } = isMode ? { mode: options } : (options ?? {});
  const text = pathOf(path);
  requireBoolean(recursive, "options.recursive");
  modeOf(mode);
  if (!recursive) {
    make(text);
    return undefined;
  }
  let first;
  const parts = tree().partsOf(text, "mkdir");
  for (let depth = 1; depth <= parts.length; depth++) {
    const step = `/${parts.slice(0, depth).join("/")}`;
    const node = tree().look(step, "mkdir");
    if (node === undefined && tree().look(step, "mkdir", false) !== undefined) throw systemError("ENOENT", "mkdir", text);
    if (node === undefined) {
      make(step);
      first ??= step;
    } else if (node.kind !== FOLDER) {
      throw systemError(depth === parts.length ? "EEXIST" : "ENOTDIR", "mkdir", text);
    }
  }
  return first;
}

function make(path) {
  const { folder, name, node } = tree().place(path, "mkdir");
  if (node !== undefined) throw systemError("EEXIST", "mkdir", path);
  tree().add(folder, name, makeFolder(), "mkdir", path);
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

export function mkdtemp(prefix, options = undefined) {
  const { encoding } = optionsOf(options);
  const text = pathOf(prefix, "prefix");
  const random = new Uint8Array(6);
  native.fillRandom(random);
  const path = text + Array.from(random, (byte) => LETTERS[byte % LETTERS.length]).join("");
  try {
    make(path);
  } catch (error) {
    throw error.code === undefined ? error : systemError(error.code, "mkdtemp", `${text}XXXXXX`);
  }
  return named(path, encoding);
}

export function mkdtempDisposable(prefix, options = undefined) {
  const path = mkdtemp(prefix, options);
  const remove = () => rm(path, { recursive: true, force: true });
  return { path, remove, [Symbol.dispose]: remove };
}

export function readdir(path, options = undefined) {
  const { encoding, withFileTypes = false, recursive = false } = optionsOf(options);
  const text = pathOf(path);
  requireBoolean(recursive, "options.recursive");
  const found = [];
  const walk = (node, parent, prefix) => {
    const folders = [];
    for (const name of namesIn(node)) {
      const entry = node.entries.get(name);
      if (withFileTypes) found.push(new Dirent(named(name, encoding), parent, entry));
      else found.push(named(prefix + name, encoding));
      if (recursive && entry.kind === FOLDER) folders.push([entry, `${parent.replace(/\/$/, "")}/${name}`, `${prefix}${name}/`]);
    }
    for (const folder of folders) walk(...folder);
  };
  const node = tree().find(text, "scandir");
  if (node.kind !== FOLDER) throw systemError("ENOTDIR", "scandir", text);
  walk(node, text, "");
  return found;
}

export function rmdir(path, options = undefined) {
  const text = pathOf(path);
  const given = options === undefined ? {} : requireObject(options, "options");
  if (given.recursive !== undefined) requireBoolean(given.recursive, "options.recursive");
  const { folder, name, node } = tree().place(text, "rmdir");
  if (node === undefined) throw systemError("ENOENT", "rmdir", text);
  if (node.kind !== FOLDER) throw systemError("ENOTDIR", "rmdir", text);
  if (node.entries.size > 0 && !given.recursive) throw systemError("ENOTEMPTY", "rmdir", text);
  tree().remove(folder, name);
}

export function rm(path, options = undefined) {
  const text = pathOf(path);
  const given = options === undefined || options === null ? {} : requireObject(options, "options");
  const { force = false, recursive = false, maxRetries = 0, retryDelay = 100 } = given;
  requireBoolean(force, "options.force");
  requireBoolean(recursive, "options.recursive");
  requireInteger(retryDelay, "options.retryDelay", 0, 2 ** 31 - 1);
  requireInteger(maxRetries, "options.maxRetries", 0, 2 ** 32 - 1);
  let found;
  try {
    found = tree().locate(text, "lstat", false);
  } catch (error) {
    if (force && error.code === "ENOENT") return;
    throw error;
  }
  if (found.node === undefined) {
    if (force) return;
    throw systemError("ENOENT", "lstat", text);
  }
  if (found.folder === null || found.folder.isFixed) throw systemError("EPERM", "rm", text);
  if (found.node.kind === FOLDER && !recursive) {
    const error = codedError(Error, "ERR_FS_EISDIR", `Path is a directory: rm returned EISDIR (is a directory) ${text}`);
    throw Object.assign(error, { name: "SystemError", errno: 21, syscall: "rm", path: text });
  }
  tree().remove(found.folder, found.name);
}

const cpError = (code, syscall, path, message) => Object.assign(codedError(Error, code, message), { name: "SystemError", path, syscall });

const OPTIONS = ["dereference", "errorOnExist", "force", "preserveTimestamps", "recursive", "verbatimSymlinks"];

export function cp(from, to, options = undefined) {
  const given = options === undefined ? {} : requireObject(options, "options");
  for (const name of OPTIONS) if (given[name] !== undefined) requireBoolean(given[name], `options.${name}`);
  if (given.mode !== undefined) requireInteger(given.mode, "options.mode", 0, 2 ** 32 - 1);
  if (given.filter !== undefined && typeof given.filter !== "function") throw invalidArgument("options.filter", "of type function", given.filter);
  copyTree(pathOf(from, "src"), pathOf(to, "dest"), { force: true, ...given }, true);
}

// Folders on the way may be missing: they are made.
function lookIfThere(path, follow) {
  try {
    return tree().look(path, "cp", follow);
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

function copyTree(from, to, options, isTop) {
  if (options.filter && !options.filter(from, to)) return;
  const source = tree().find(from, "lstat", options.dereference === true);
  const target = lookIfThere(to, options.dereference === true);
  if (target !== undefined && target === source) throw cpError("ERR_FS_CP_EINVAL", "cp", to, `Invalid src or dest: cp returned EINVAL (src and dest cannot be the same) ${to}`);
  if (source.kind === FOLDER) {
    if (target !== undefined && target.kind !== FOLDER) throw cpError("ERR_FS_CP_DIR_TO_NON_DIR", "cp", to, `Cannot overwrite non-directory with directory: cp returned EISDIR (cannot overwrite non-directory ${to} with directory ${from}) ${to}`);
    const [inner, outer] = [tree().partsOf(to, "cp").join("/"), tree().partsOf(from, "cp").join("/")];
    if (isTop && `${inner}/`.startsWith(`${outer}/`)) throw cpError("ERR_FS_CP_EINVAL", "cp", to, `Invalid src or dest: cp returned EINVAL (cannot copy ${from} to a subdirectory of self ${to}) ${to}`);
    if (!options.recursive) throw cpError("ERR_FS_EISDIR", "cp", from, `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${from} is a directory (not copied)) ${from}`);
    const names = [...source.entries.keys()];
    if (target === undefined) mkdir(to, { recursive: true });
    for (const name of names) copyTree(`${from.replace(/\/$/, "")}/${name}`, `${to.replace(/\/$/, "")}/${name}`, options, false);
    return;
  }
  if (target?.kind === FOLDER) throw cpError("ERR_FS_CP_NON_DIR_TO_DIR", "cp", to, `Cannot overwrite directory with non-directory: cp returned ENOTDIR (cannot overwrite directory ${to} with non-directory ${from}) ${to}`);
  const parent = tree().partsOf(to, "cp").slice(0, -1).join("/");
  if (isTop && parent !== "") mkdir(`/${parent}`, { recursive: true });
  if (target !== undefined && !options.force) {
    if (options.errorOnExist) throw cpError("ERR_FS_CP_EEXIST", "cp", to, `Target already exists: cp returned EEXIST (${to} already exists) ${to}`);
    return;
  }
  if (source.kind === LINK) {
    if (target !== undefined) rm(to);
    symlink(source.target, to);
    return;
  }
  copyFile(from, to, target !== undefined && (options.mode ?? 0) & constants.COPYFILE_EXCL ? constants.COPYFILE_EXCL : 0);
  if (options.preserveTimestamps && source.kind === FILE) tree().find(to, "cp").modified = source.modified;
}

/** https://nodejs.org/api/fs.html#fsglobsyncpattern-options */
export function glob(pattern, options = undefined) {
  const patterns = Array.isArray(pattern) ? pattern : [pattern];
  for (const one of patterns) if (typeof one !== "string") throw invalidArgument("pattern", "of type string or an instance of string[]", pattern);
  const { cwd = currentFolder(), exclude = undefined, withFileTypes = false } = options === undefined ? {} : requireObject(options, "options");
  if (exclude !== undefined && typeof exclude !== "function" && !Array.isArray(exclude)) {
    throw invalidArgument("options.exclude", "of type function or an instance of string[]", exclude);
  }
  const excluded = Array.isArray(exclude) ? exclude.map(globToRegExp) : [];
  const isExcluded = (path, dirent) => (typeof exclude === "function" ? exclude(withFileTypes ? dirent : path) : excluded.some((one) => one.test(path)));
  const wanted = patterns.map((one) => ({ isAbsolute: one.startsWith("/"), test: globToRegExp(one.replace(/^\.\//, "").replace(/^\//, "")) }));
  const found = new Map();
  const walk = (node, base, prefix, isAbsolute) => {
    for (const name of namesIn(node)) {
      const entry = node.entries.get(name);
      const path = prefix + name;
      const dirent = new Dirent(name, base, entry);
      const shown = isAbsolute ? `/${path}` : path;
      if (isExcluded(shown, dirent)) continue;
      if (wanted.some((one) => one.isAbsolute === isAbsolute && one.test.test(path))) found.set(shown, dirent);
      if (entry.kind === FOLDER) walk(entry, `${base.replace(/\/$/, "")}/${name}`, `${path}/`, isAbsolute);
    }
  };
  const start = pathOf(cwd, "options.cwd");
  const root = tree().look(start, "glob");
  if (root?.kind === FOLDER && wanted.some((one) => !one.isAbsolute)) {
    if (wanted.some((one) => !one.isAbsolute && one.test.test(""))) found.set(".", new Dirent(".", start, root));
    walk(root, start, "", false);
  }
  if (wanted.some((one) => one.isAbsolute)) walk(tree().find("/", "glob"), "/", "", true);
  return withFileTypes ? [...found.values()] : [...found.keys()];
}
