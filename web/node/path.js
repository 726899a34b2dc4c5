// https://nodejs.org/api/path.html: functions on text, without a file system.
//
// Both dialects use one algorithm with a `style`: the separators, and the root of a path.
import { cwd } from "./cwd.js";
import { requireObject, requireString } from "./errors.js";

const POSIX = {
  separator: "/",
  delimiter: ":",
  isSeparator: (char) => char === "/",
  // The part of the path that `..` cannot leave: { device, root } as text.
  rootOf: (path) => ({ device: "", root: path.startsWith("/") ? "/" : "" }),
  equals: (a, b) => a === b,
};

const WIN32 = {
  separator: "\\",
  delimiter: ";",
  isSeparator: (char) => char === "/" || char === "\\",
  rootOf(path) {
    const unc = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)/.exec(path);
    if (unc !== null) {
      const rest = path.slice(unc[0].length);
      return { device: `\\\\${unc[1]}\\${unc[2]}`, root: "\\", taken: unc[0].length + (/^[\\/]/.test(rest) ? 1 : 0) };
    }
    const drive = /^([A-Za-z]:)([\\/]?)/.exec(path);
    if (drive !== null) return { device: drive[1], root: drive[2] === "" ? "" : "\\", taken: drive[0].length };
    return { device: "", root: /^[\\/]/.test(path) ? "\\" : "", taken: /^[\\/]/.test(path) ? 1 : 0 };
  },
  equals: (a, b) => a.toLowerCase() === b.toLowerCase(),
};

// { device, root, rest }: the text before the first name, and the names.
function split(style, path) {
  const { device, root, taken } = style.rootOf(path);
  const rest = path.slice(taken ?? root.length);
  return { device, root, rest };
}

// `\\.\` and `\\?\` are names of devices, without a share.
function splitDevice(path) {
  const special = /^[\\/]{2}([.?])(?:[\\/]|$)/.exec(path);
  return special === null ? split(WIN32, path) : { device: `\\\\${special[1]}`, root: "\\", rest: path.slice(4) };
}

const RESERVED = /^(?:CON|PRN|AUX|NUL|COM[1-9\u00b9\u00b2\u00b3]|LPT[1-9\u00b9\u00b2\u00b3])$/i;

function isMisleading(path, device, normal) {
  const colon = path.indexOf(":");
  if (colon === -1) return false;
  if (device === "" && (/^[A-Za-z]:/.test(normal) || /:(?:[\\/]|$)/.test(path))) return true;
  return RESERVED.test(path.slice(0, colon));
}

function namesOf(style, text) {
  return text.split(style === WIN32 ? /[\\/]+/ : /\/+/).filter((name) => name !== "");
}

// Removes `.`, and `..` where there is a name to go up from.
function simplify(names, isAbsolute) {
  const kept = [];
  for (const name of names) {
    if (name === ".") continue;
    if (name !== "..") kept.push(name);
    else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
    else if (!isAbsolute) kept.push("..");
  }
  return kept;
}

// The start and end of the last name, without trailing separators.
function lastName(style, path) {
  const { device, root, rest } = split(style, path);
  const start = path.length - rest.length;
  let end = path.length;
  while (end > start && style.isSeparator(path[end - 1])) end--;
  let begin = end;
  while (begin > start && !style.isSeparator(path[begin - 1])) begin--;
  return { begin, end, start, head: device + root };
}

function extensionOf(name) {
  const dot = name.lastIndexOf(".");
  return dot <= 0 || name === ".." ? "" : name.slice(dot);
}

function makeDialect(style, workingDirectory) {
  const dialect = {
    sep: style.separator,
    delimiter: style.delimiter,

    normalize(path) {
      requireString(path, "path");
      if (path === "") return ".";
      const { device, root, rest } = style === WIN32 ? splitDevice(path) : split(style, path);
      const names = simplify(namesOf(style, rest), root !== "").join(style.separator);
      const tail = names !== "" && style.isSeparator(path.at(-1)) ? style.separator : "";
      const body = names === "" && root === "" ? (style.isSeparator(path.at(-1)) ? `.${style.separator}` : ".") : names + tail;
      const normal = device + root + body;
      // What was a relative path must not become one with a drive, a device or a stream.
      return style === WIN32 && root === "" && isMisleading(path, device, normal) ? `.\\${normal}` : normal;
    },

    isAbsolute(path) {
      requireString(path, "path");
      return split(style, path).root !== "";
    },

    join(...parts) {
      for (const part of parts) requireString(part, "path");
      const filled = parts.filter((part) => part !== "");
      let joined = filled.join(style.separator);
      // Several separators at the start are a path of the network only if the first part says so.
      if (style === WIN32 && !/^[\\/]{2}[^\\/]/.test(filled[0] ?? "")) joined = joined.replace(/^[\\/]{2,}/, "\\");
      // Names of devices are not resolved: `..` behind one could leave it.
      const isDevice = (name) => name.includes(":") && RESERVED.test(name.slice(0, name.indexOf(":")));
      if (style === WIN32 && namesOf(style, joined).some(isDevice)) return joined.replaceAll("/", "\\");
      return joined === "" ? "." : dialect.normalize(joined);
    },

    resolve(...parts) {
      let device = "";
      let root = "";
      let names = [];
      for (const part of [workingDirectory(), ...parts]) {
        requireString(part, "paths");
        if (part === "") continue;
        const next = split(style, part);
        if (next.device !== "" && !style.equals(next.device, device)) [device, root, names] = [next.device, next.root, []];
        else if (next.root !== "") [root, names] = [next.root, []];
        if (next.device !== "") ({ device } = next);
        names.push(...namesOf(style, next.rest));
      }
      const resolved = device + root + simplify(names, root !== "").join(style.separator);
      return resolved === "" ? "." : resolved;
    },

    relative(from, to) {
      requireString(from, "from");
      requireString(to, "to");
      const [source, target] = [dialect.resolve(from), dialect.resolve(to)];
      const [up, down] = [namesOf(style, source), namesOf(style, target)];
      let common = 0;
      while (common < up.length && common < down.length && style.equals(up[common], down[common])) common++;
      if (style === WIN32 && common === 0 && !style.equals(source, target)) return target;
      return [...up.slice(common).map(() => ".."), ...down.slice(common)].join(style.separator);
    },

    dirname(path) {
      requireString(path, "path");
      if (path === "") return ".";
      const { begin, start, head } = lastName(style, path);
      // Of several separators only the last is removed.
      if (begin - 1 > start) return path.slice(0, begin - 1);
      if (style === POSIX && head !== "" && begin === 2) return "//";
      if (start > 0) return style === POSIX ? head : path.slice(0, start);
      return ".";
    },

    basename(path, suffix = undefined) {
      requireString(path, "path");
      if (suffix !== undefined) requireString(suffix, "suffix");
      if (suffix !== undefined && suffix !== "" && suffix === path) return "";
      const { begin, end } = lastName(style, path);
      const name = path.slice(begin, end);
      return suffix !== undefined && name !== suffix && name.endsWith(suffix) ? name.slice(0, name.length - suffix.length) : name;
    },

    extname(path) {
      requireString(path, "path");
      const { begin, end } = lastName(style, path);
      return extensionOf(path.slice(begin, end));
    },

    parse(path) {
      requireString(path, "path");
      const { begin, end, start } = lastName(style, path);
      const root = path.slice(0, start);
      const base = path.slice(begin, end);
      const ext = extensionOf(base);
      const dirEnd = begin - 1;
      return { root, dir: dirEnd > start ? path.slice(0, dirEnd) : root, base, ext, name: base.slice(0, base.length - ext.length) };
    },

    format(parts) {
      requireObject(parts, "pathObject");
      const ext = parts.ext ? (parts.ext.startsWith(".") ? parts.ext : `.${parts.ext}`) : "";
      const base = parts.base || `${parts.name ?? ""}${ext}`;
      const dir = parts.dir || parts.root;
      if (!dir) return base;
      return dir === parts.root ? `${dir}${base}` : `${dir}${style.separator}${base}`;
    },

    matchesGlob(path, pattern) {
      requireString(path, "path");
      requireString(pattern, "pattern");
      return globToRegExp(pattern, style).test(path);
    },

    toNamespacedPath(path) {
      if (style === POSIX || typeof path !== "string" || path === "") return path;
      const resolved = dialect.resolve(path);
      if (/^\\\\[^?.]/.test(resolved)) return `\\\\?\\UNC\\${resolved.slice(2)}`;
      return /^[A-Za-z]:\\/.test(resolved) ? `\\\\?\\${resolved}` : resolved.length <= 2 ? path : resolved;
    },

    _makeLong: undefined,
  };
  dialect._makeLong = dialect.toNamespacedPath;
  return dialect;
}

// `*` and `?` within a name, `**` across names, `{a,b}` and `[abc]`.
function globToRegExp(pattern, style) {
  const slash = style === WIN32 ? "[\\\\/]" : "/";
  const name = style === WIN32 ? "[^\\\\/]" : "[^/]";
  let depth = 0;
  const source = pattern.replace(/\*\*\/|\*\*|\*|\?|\{|\}|,|\[!?|\]|\/|[\\^$+.()|]/g, (token) => {
    if (token === "**/") return `(?:.*${slash})?`;
    if (token === "**") return ".*";
    if (token === "*") return `${name}*`;
    if (token === "?") return name;
    if (token === "/") return slash;
    if (token === "{") return depth++ >= 0 ? "(?:" : "";
    if (token === "}" && depth > 0) return depth-- > 0 ? ")" : "";
    if (token === ",") return depth > 0 ? "|" : ",";
    if (token === "[!") return "[^";
    if (token === "[" || token === "]") return token;
    return `\\${token}`;
  });
  return new RegExp(`^${source}$`);
}

export const posix = makeDialect(POSIX, cwd);
export const win32 = makeDialect(WIN32, () => "C:\\");
for (const dialect of [posix, win32]) {
  dialect.posix = posix;
  dialect.win32 = win32;
}
