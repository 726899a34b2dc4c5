// node:fs on a folder below /tmp: every function in its three forms, with good and bad arguments.
import { Buffer } from "node:buffer";
import fs, { constants } from "node:fs";
import promises from "node:fs/promises";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";

const BASE = "/tmp/atoll-beside-node";

// What can be compared: not times, inodes and owners.
function plain(value) {
  if (value instanceof fs.Stats) return `stats ${value.isFile() ? value.size : ""} ${value.isFile()} ${value.isDirectory()} ${value.isSymbolicLink()} ${value.mtime instanceof Date}`;
  if (value instanceof fs.Dirent) return `dirent ${value.name} ${value.parentPath} ${value.isFile()} ${value.isDirectory()} ${value.isSymbolicLink()}`;
  if (value instanceof fs.Dir) return `dir ${value.path}`;
  if (Buffer.isBuffer(value)) return `buffer ${value.toString("latin1")}`;
  if (Array.isArray(value)) return value.map(plain).join("; ");
  if (value !== null && typeof value === "object") return JSON.stringify(value);
  return String(value);
}

// The texts of wrong arguments may differ: their codes may not.
const failure = (error) => (String(error.code).startsWith("ERR_") ? error.code : `${error.name} ${error.code} ${error.syscall} ${error.path} ${error.dest} ${error.message}`);

function setUp() {
  fs.rmSync(BASE, { recursive: true, force: true });
  fs.mkdirSync(`${BASE}/folder/inner`, { recursive: true });
  fs.writeFileSync(`${BASE}/file`, "some text");
  fs.writeFileSync(`${BASE}/empty`, "");
  fs.writeFileSync(`${BASE}/folder/one.txt`, "one");
  fs.writeFileSync(`${BASE}/folder/inner/two.js`, "two");
  fs.symlinkSync(`${BASE}/file`, `${BASE}/link`);
  fs.symlinkSync(`${BASE}/nowhere`, `${BASE}/dangling`);
  fs.symlinkSync(`${BASE}/folder`, `${BASE}/shortcut`);
  fs.symlinkSync(`${BASE}/loop`, `${BASE}/loop`);
}

const contents = () => {
  const found = [];
  const walk = (path) => {
    for (const name of fs.readdirSync(path).sort()) {
      const inner = `${path}/${name}`;
      const stats = fs.lstatSync(inner);
      found.push(inner.slice(BASE.length) + (stats.isSymbolicLink() ? ` -> ${fs.readlinkSync(inner)}` : stats.isDirectory() ? "/" : ` ${fs.readFileSync(inner, "latin1").slice(0, 40)}`));
      if (stats.isDirectory()) walk(inner);
    }
  };
  walk(BASE);
  return found.join(", ");
};

export const cases = {};

/** One call in all its forms. Each starts with the same files, and shows the result and the files afterwards. */
function add(name, ...args) {
  const label = `${name}(${args.map((arg) => (arg instanceof URL ? `URL ${arg}` : Buffer.isBuffer(arg) ? `buffer ${arg}` : typeof arg === "symbol" ? "symbol" : JSON.stringify(arg) ?? String(arg))).join(", ")})`;
  const run = (form, call) => {
    cases[`${label} ${form}`] = async () => {
      setUp();
      let result;
      try {
        result = plain(await call());
      } catch (error) {
        result = failure(error);
      }
      return `${result} | ${contents()}`;
    };
  };
  if (fs[`${name}Sync`]) run("sync", () => fs[`${name}Sync`](...args));
  if (fs[name] && !name.startsWith("f")) run("callback", () => promisify(fs[name])(...args));
  if (promises[name]) run("promise", () => promises[name](...args));
}

const PATHS = ["file", "empty", "folder", "folder/one.txt", "link", "dangling", "shortcut", "shortcut/one.txt", "loop", "missing", "missing/file", "file/inner", "folder/../file", "./folder//inner/"].map((path) => `${BASE}/${path}`);
const WRONG = [undefined, null, 5.5, true, {}, [], `${BASE}/\0`, new URL("https://host/file"), new URL(`file://${BASE}/a%2Fb`)];
const SOUND = [Buffer.from(`${BASE}/file`), new URL(`file://${BASE}/file`)];

for (const path of [...PATHS, ...WRONG, ...SOUND]) {
  for (const name of ["access", "stat", "lstat", "readFile", "readdir", "unlink", "rmdir", "rm", "mkdir", "readlink", "truncate", "exists"]) {
    if (name === "truncate" && typeof path === "number") continue;
    add(name, path);
  }
  add("readFile", path, "utf8");
  add("writeFile", path, "new");
  add("appendFile", path, "more");
  add("copyFile", path, `${BASE}/copy`);
  add("copyFile", `${BASE}/file`, path);
  add("rename", path, `${BASE}/moved`);
  if (!String(path).endsWith("/")) add("rename", `${BASE}/file`, path);
  add("rename", `${BASE}/folder`, path);
  add("link", path, `${BASE}/hard`);
  add("symlink", "target", path);
  add("rm", path, { recursive: true });
  add("rm", path, { force: true });
  add("mkdir", path, { recursive: true });
  if (!/dangling|loop/.test(path) && typeof path === "string") add("cp", path, `${BASE}/copied`, { recursive: true });
  add("chmod", path, 0o644);
  add("utimes", path, 1, 2);
}
for (const flag of [...["r", "r+", "w", "w+", "wx", "a", "a+", "ax", "as", "xw+", "rs+", "q", "", null, 0, 1, 2, 65, 193, 1e10, 1.5, {}, true]]) {
  for (const path of [`${BASE}/file`, `${BASE}/missing`]) {
    cases[`open ${path} ${JSON.stringify(flag)}`] = () => {
      setUp();
      try {
        const fd = fs.openSync(path, flag);
        const results = [];
        for (const step of [() => fs.readSync(fd, Buffer.alloc(4)), () => fs.writeSync(fd, "XY"), () => fs.fstatSync(fd).size, () => fs.ftruncateSync(fd, 3)]) {
          try {
            results.push(plain(step()));
          } catch (error) {
            results.push(failure(error));
          }
        }
        fs.closeSync(fd);
        return `${results.join("; ")} | ${contents()}`;
      } catch (error) {
        return failure(error);
      }
    };
  }
}
for (const path of ["file", "folder", "link", "shortcut", "shortcut/one.txt", "folder/../file"]) add("realpath", `${BASE}/${path}`);
for (const mode of [0, 1, 2, 3, 4, 6, 7, 8, -1, 1.5, "r", null, {}]) add("access", `${BASE}/file`, mode);
for (const options of ["utf8", "hex", "base64", "buffer", "nope", null, undefined, 5, true, { encoding: "latin1" }, { encoding: "nope" }, { flag: "a+" }, { flag: "wx" }, { flag: "zz" }]) {
  add("readFile", `${BASE}/file`, options);
  add("readdir", BASE, options);
  add("readlink", `${BASE}/link`, options);
  add("realpath", `${BASE}/shortcut`, options);
  add("writeFile", `${BASE}/file`, "aGk=", options);
  add("appendFile", `${BASE}/file`, "aGk=", options);
}
for (const data of ["text", "", Buffer.from("bytes"), new Uint8Array([65, 66]), new Uint16Array([65, 66]), new DataView(new ArrayBuffer(2)), 5, null, undefined, {}, true]) add("writeFile", `${BASE}/out`, data);
for (const options of [{ withFileTypes: true }, { recursive: true }, { recursive: true, withFileTypes: true }]) {
  for (const path of [`${BASE}/folder`, `${BASE}/folder/`, `${BASE}/shortcut`]) add("readdir", path, options);
}
for (const options of [{ recursive: false }, { recursive: 1 }, 0o700, "777", "9", { mode: "x" }, { mode: -1 }]) add("mkdir", `${BASE}/made`, options);
for (const options of [{ force: 5 }, { recursive: "yes" }, { maxRetries: -1 }, { retryDelay: "x" }, 5]) add("rm", `${BASE}/file`, options);
for (const len of [0, 1, 4, 20, -1, 1.5, "3", null, undefined]) add("truncate", `${BASE}/file`, len);
for (const options of [{ throwIfNoEntry: false }, { throwIfNoEntry: true }]) for (const name of ["stat", "lstat"]) cases[`${name} ${JSON.stringify(options)}`] = () => {
  setUp();
  return ["file", "missing", "missing/x", "dangling"].map((path) => {
    try {
      return plain(fs[`${name}Sync`](`${BASE}/${path}`, options));
    } catch (error) {
      return failure(error);
    }
  }).join("; ");
};
for (const mode of [0, 1, 2, 3, 8, -1, "1", 1.5]) for (const to of ["copy", "empty", "folder", "link"]) add("copyFile", `${BASE}/file`, `${BASE}/${to}`, mode);
for (const [from, to] of [["folder", "copied"], ["folder", "folder/inner/deep"], ["file", "folder"], ["folder", "file"], ["file", "file"], ["file", "new/deep/file"], ["link", "copied"]]) {
  for (const options of [undefined, { recursive: true }, { recursive: true, force: false }, { recursive: true, errorOnExist: true, force: false }, { recursive: true, dereference: true }, { recursive: 5 }]) add("cp", `${BASE}/${from}`, `${BASE}/${to}`, options);
}
for (const type of ["dir", "file", "junction", "other", 5]) add("symlink", "x", `${BASE}/new`, type);
for (const [a, m] of [[1, 2], ["1", "2"], [new Date(5), new Date(7000)], [-1, -1], ["x", 1], [null, 1], [1, {}], [NaN, 1]]) add("utimes", `${BASE}/file`, a, m);
for (const [u, g] of [["1", 1], [1, "1"], [-2, 1], [1.5, 1]]) add("chown", `${BASE}/file`, u, g);
for (const mode of ["644", "9", 1.5, -1, undefined, null, {}]) add("chmod", `${BASE}/file`, mode);
for (const fd of [undefined, null, "3", -1, 1.5, 99_999, 2 ** 31, {}]) {
  for (const [name, ...rest] of [["close"], ["fstat"], ["fsync"], ["fdatasync"], ["ftruncate", 1], ["futimes", 1, 2], ["fchmod", 0o644], ["fchown", 1, 1], ["read", Buffer.alloc(4)], ["write", "x"], ["readv", [Buffer.alloc(1)]], ["writev", [Buffer.alloc(1)]]]) add(name, fd, ...rest);
}

/** Steps on one open file. */
function steps(label, flag, run) {
  cases[label] = async () => {
    setUp();
    const fd = fs.openSync(`${BASE}/file`, flag);
    try {
      return `${plain(await run(fd))} | ${fs.readFileSync(`${BASE}/file`, "latin1")}`;
    } catch (error) {
      return failure(error);
    } finally {
      fs.closeSync(fd);
    }
  };
}
const BUFFERS = [() => Buffer.alloc(4, "."), () => Buffer.alloc(0), () => new Uint16Array(3), () => new DataView(new ArrayBuffer(3)), () => "text", () => null];
for (const [number, make] of BUFFERS.entries()) {
  for (const rest of [[], [0], [1], [1, 2], [0, 4, 2], [0, 2, null], [0, 2, -1], [0, 2, 3n], [5], [0, 9], [-1], [0, -1], [1.5], ["0"], [0, "2"], [0, 2, 1.5], [0, 2, "1"], [{}], [{ offset: 1 }], [{ length: 2, position: 1 }], [null], [0, null, null]]) {
    const shown = rest.map((one) => (typeof one === "bigint" ? `${one}n` : JSON.stringify(one))).join(", ");
    steps(`readSync ${number} ${shown}`, "r", (fd) => {
      const buffer = make();
      return `${fs.readSync(fd, buffer, ...rest)} ${Buffer.from(buffer.buffer ?? "").toString("latin1")}`;
    });
    if (!shown.includes("n")) steps(`writeSync ${number} ${shown}`, "r+", (fd) => fs.writeSync(fd, make(), ...rest));
  }
}
steps("reads go on where the last ended", "r", (fd) => [fs.readSync(fd, Buffer.alloc(3)), fs.readSync(fd, Buffer.alloc(3), 0, 3, 0), fs.readSync(fd, Buffer.alloc(30))]);
steps("writes beyond the end leave zeros", "r+", (fd) => [fs.writeSync(fd, "x", 20), fs.fstatSync(fd).size]);
steps("appending ignores the position", "a+", (fd) => [fs.writeSync(fd, "x", 0), fs.writeSync(fd, "y", 3)]);
steps("several buffers", "r+", (fd) => [fs.writevSync(fd, [Buffer.from("ab"), Buffer.from("cd")], 2), fs.readvSync(fd, [Buffer.alloc(2), Buffer.alloc(20)])]);
steps("readFile of a descriptor reads the rest", "r", (fd) => [fs.readSync(fd, Buffer.alloc(3)), fs.readFileSync(fd, "utf8"), fs.readFileSync(fd, "utf8")]);
steps("writeFile to a descriptor goes on", "r+", (fd) => [fs.writeSync(fd, "AB"), fs.writeFileSync(fd, "CD")]);
steps("promisified read and write", "r+", async (fd) => [JSON.stringify(await promisify(fs.read)(fd, Buffer.alloc(3))), JSON.stringify(await promisify(fs.write)(fd, Buffer.from("zz")))]);
for (const buffers of [[], [5], "x", null, undefined]) steps(`readv ${JSON.stringify(buffers)}`, "r", (fd) => fs.readvSync(fd, buffers));

const handle = (label, flag, run) => {
  cases[`handle: ${label}`] = async () => {
    setUp();
    const file = await promises.open(`${BASE}/file`, flag);
    try {
      return `${plain(await run(file))} | ${fs.readFileSync(`${BASE}/file`, "latin1")}`;
    } catch (error) {
      return failure(error);
    } finally {
      await file.close();
    }
  };
};
handle("reads", "r", async (file) => [JSON.stringify(await file.read(Buffer.alloc(4), 0, 4, 1)), JSON.stringify((await file.read({ length: 3 })).bytesRead), (await file.read()).bytesRead]);
handle("writes", "r+", async (file) => [JSON.stringify(await file.write("abc", 2)), JSON.stringify(await file.write(Buffer.from("xyz"), 1, 1, 0))]);
handle("whole", "r+", async (file) => [await file.readFile("utf8"), await file.writeFile("tail"), await file.appendFile("more"), await file.stat(), await file.truncate(4)]);
handle("lines", "r+", async (file) => {
  await file.writeFile("a\nb\r\nc");
  const again = await promises.open(`${BASE}/file`);
  const lines = [];
  for await (const line of again.readLines()) lines.push(line);
  return lines;
});
handle("web stream", "r", async (file) => new Response(file.readableWebStream()).text());
handle("closed", "r", async (file) => {
  await file.close();
  return [file.fd, await file.close(), await file.stat().catch(failure)];
});
handle("streams", "r", async (file) => text(file.createReadStream({ start: 2, end: 5 })));

for (const options of [undefined, "utf8", { start: 2 }, { start: 2, end: 4 }, { end: 3 }, { start: 5, end: 2 }, { start: -1 }, { start: "1" }, { highWaterMark: 3 }, { encoding: "hex" }, { flags: "wx" }, 5]) {
  cases[`createReadStream ${JSON.stringify(options)}`] = async () => {
    setUp();
    try {
      const stream = fs.createReadStream(`${BASE}/file`, options);
      const events = [];
      for (const name of ["open", "ready", "end", "close"]) stream.on(name, () => events.push(name));
      const found = await text(stream);
      await new Promise((resolve) => (stream.closed ? resolve() : stream.once("close", resolve)));
      return `${found} ${stream.bytesRead} ${stream.path} ${stream.pending} ${events}`;
    } catch (error) {
      return failure(error);
    }
  };
}
for (const options of [undefined, "latin1", { flags: "a" }, { flags: "r+", start: 2 }, { start: -1 }, { flags: "wx" }, 5]) {
  cases[`createWriteStream ${JSON.stringify(options)}`] = async () => {
    setUp();
    try {
      const stream = fs.createWriteStream(`${BASE}/file`, options);
      const events = [];
      for (const name of ["open", "ready", "finish", "close"]) stream.on(name, () => events.push(name));
      const closed = new Promise((resolve, reject) => stream.on("close", resolve).on("error", reject));
      stream.write("ABC");
      stream.end("DÉ");
      await closed;
      return `${stream.bytesWritten} ${stream.path} ${stream.pending} ${events} ${contents()}`;
    } catch (error) {
      return `${failure(error)} ${contents()}`;
    }
  };
}
for (const pattern of ["*", "**", "**/*.js", "folder/*", "folder/**", "*.txt", "{file,empty}", "folder/**/*.{js,txt}", "f[io]l*", "?mpty", "missing/*", "./file", ["file", "empty"], 5, [5]]) {
  for (const more of [{}, { exclude: ["folder"] }, { exclude: ["**/*.js"] }, { exclude: 5 }]) {
    cases[`glob ${JSON.stringify(pattern)} ${JSON.stringify(more)}`] = () => {
      setUp();
      for (const name of ["loop", "dangling", "shortcut", "link"]) fs.unlinkSync(`${BASE}/${name}`);
      try {
        return fs.globSync(pattern, { cwd: BASE, ...more }).sort().join();
      } catch (error) {
        return failure(error);
      }
    };
  }
}
cases["a folder in steps"] = async () => {
  setUp();
  const dir = fs.opendirSync(`${BASE}/folder`);
  const names = [dir.readSync().name, (await dir.read()).name, dir.readSync()].sort();
  dir.closeSync();
  return `${names} ${await dir.read().catch(failure)}`;
};
cases["a folder in a loop"] = async () => {
  setUp();
  const names = [];
  for await (const entry of await promises.opendir(BASE)) names.push(plain(entry));
  return names.sort().join();
};
cases["temporary folders"] = async () => {
  setUp();
  const made = [fs.mkdtempSync(`${BASE}/x-`), await promises.mkdtemp(`${BASE}/y-`), String(fs.mkdtempSync(`${BASE}/z-`, "buffer"))];
  return made.map((path) => path.slice(0, -6)).join() + made.every((path) => fs.statSync(path).isDirectory() && path.length === BASE.length + 9);
};
cases["a blob of a file"] = async () => {
  setUp();
  const blob = await fs.openAsBlob(`${BASE}/file`, { type: "text/plain" });
  return `${blob.type} ${await blob.text()}`;
};
cases["names of the module"] = () => ["Dir", "Utf8Stream", ...Object.keys(fs)].filter((name) => !/^([FRWX]_OK|Utf8Stream|mkdtempDisposable)/.test(name)).sort().join();
cases["names of promises"] = () => Object.keys(promises).sort().join();
cases["constants"] = () => JSON.stringify(Object.entries(constants).sort());
cases["promises are the same"] = () => fs.promises === promises;
