// Edges of buffer, url, path, querystring, events, string_decoder, fs streams and readline.
import { Buffer, isAscii, isUtf8 } from "node:buffer";
import crypto from "node:crypto";
import { EventEmitter, getMaxListeners, on, once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import querystring from "node:querystring";
import readline from "node:readline";
import { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import * as url from "node:url";

export const cases = {};
const add = (name, run) => {
  cases[name] = run;
};

// --- buffer ---
const HAY = Buffer.from("abcabcdab");
const OFFSETS = [undefined, null, 0, 1, 3, 8, 9, 20, -1, -3, -9, -10, -20, NaN, Infinity, -Infinity, 1.7, "2", "x", {}, true];
const NEEDLES = ["", "a", "abc", "d", "x", 97, 353, 98.5, -159, Buffer.from("ab"), Buffer.alloc(0), new Uint8Array([99, 100])];
for (const [i, needle] of NEEDLES.entries()) {
  for (const [j, offset] of OFFSETS.entries()) {
    add(`indexOf ${i} ${j}`, () => [HAY.indexOf(needle, offset), HAY.lastIndexOf(needle, offset), HAY.includes(needle, offset)]);
  }
}
const WIDE = Buffer.from("\u0061\u0161b\u6161c", "utf16le");
for (const text of ["", "a", "b", "\u6161", "c", "ac"]) {
  for (const offset of [undefined, 0, 1, 2, 3, 5, 10, -1, -2, -4, -20]) {
    add(`indexOf utf16 ${text} ${offset}`, () => [WIDE.indexOf(text, offset, "ucs2"), WIDE.lastIndexOf(text, offset, "utf16le")]);
  }
}
for (const at of [0, 1, 4, 9, 10, -1, 1.5, "1", null, Infinity]) {
  for (const end of [0, 1, 9, 10, -1, undefined]) {
    add(`compare ${at} ${end}`, () => HAY.compare(Buffer.from("abcd"), 0, 4, at, end));
    add(`copy ${at} ${end}`, () => {
      const target = Buffer.alloc(6);
      return [HAY.copy(target, 1, at, end), target];
    });
    add(`copy to ${at} ${end}`, () => HAY.copy(Buffer.alloc(4), at, 0, end));
    add(`write ${at} ${end}`, () => {
      const target = Buffer.alloc(9);
      return [target.write("h\u00e9llo", at, end), target];
    });
    add(`latin1Write ${at} ${end}`, () => typeof at === "number" && Number.isInteger(at) && at <= 9 ? Buffer.alloc(9).latin1Write("abc", at, end) : 0);
  }
}
for (const value of [0, 255, 256, -1, 2 ** 40, -(2 ** 40), NaN, Infinity]) {
  for (const size of [0, 1, 3, 5, 6, 7, NaN, 1.5, Infinity, "3"]) {
    add(`writeIntBE ${value} ${size}`, () => Buffer.alloc(6).writeIntBE(value, 0, size));
    add(`writeUIntLE ${value} ${size}`, () => Buffer.alloc(6).writeUIntLE(value, 0, size));
  }
  for (const name of ["readDoubleLE", "readFloatBE", "readInt8", "readBigInt64LE"]) add(`${name} ${value}`, () => Buffer.alloc(8).fill(3)[name](value));
}
for (const length of [undefined, 0, 2, 20, -1, 1.5, "2", null]) add(`concat ${length}`, () => Buffer.concat([HAY, HAY], length).length);
for (const value of [[], ["a"], "x", 5, null, [HAY, 5]]) add(`concat of ${JSON.stringify(value)}`, () => Buffer.concat(value));
for (const [i, value] of [new Uint8Array([65]), new ArrayBuffer(2), "a", null, new DataView(new ArrayBuffer(1)), new Uint16Array([200]), Buffer.from([0xff])].entries()) {
  add(`isAscii ${i}`, () => isAscii(value));
  add(`isUtf8 ${i}`, () => isUtf8(value));
}
add("Buffer of a number with an encoding", () => new Buffer(5, "utf8"));

// --- url ---
const URLS = [
  "http://a.com:b/x", "http://a:b:80/c", "coap:u:p@::1:61616/.well-known/r?n=T", "\bhttp://example.com/\b", " http://a.com/ b#c d ", "http:\\\\evil\\x.html#h\\a", "http://user@x.com@y.com/", "javascript:alert('hello');", "http://[::1", "http://[fe80::1]/a?b",
  "git+ssh://git@host:22/repo.git", "data:text/plain,hi there", "//user:pass@host/x", "/a?b#c", "a/b", "?q", "#h", "http://ex.com/`{}|\\^<>\"", "HTTP://U:P@EX.COM:080/?A=B", "file:///C:/x y", "http://-a_b.com/", "http://a\tb.com/x\ny", "mailto:foo@bar.com?subject=hi", "x:/y", "x://y?z", "http://ex.com;p?q", "http://a.b/\u4f60?\u597d", "http:/x/y", "http:x",
];
for (const one of URLS) {
  add(`parse ${one}`, () => ({ ...url.parse(one) }));
  add(`parse query ${one}`, () => ({ ...url.parse(one, true, true) }));
  for (const base of ["http://h.com/a/b?c#d", "/a/b/c", "mailto:x@y.z", "file:///dir/file", "x://host/p/q"]) {
    add(`resolve ${base} + ${one}`, () => url.resolve(base, one));
    add(`resolve ${one} + ${base}`, () => url.resolve(one, base));
    add(`resolveObject ${base} + ${one}`, () => ({ ...url.resolveObject(base, one) }));
  }
}
for (const one of [{}, { host: "a" }, { protocol: "http", hostname: "::1", port: 5, pathname: "x?y#z" }, { slashes: true, pathname: "a" }, { protocol: "file", pathname: "/x" }, { query: { a: [1, 2] } }, { search: "a#b", hash: "c" }, { auth: "a:b@c", host: "d" }, null, 5]) {
  add(`format ${JSON.stringify(one)}`, () => url.format(one));
}
for (const one of ["/a b", "/\u4f60", "/a#?%~", "rel", "/x/", "C:\\foo\\", "\\\\srv\\share\\x", "/[]{}|^`", "/a\\b"]) {
  add(`pathToFileURL ${one}`, () => url.pathToFileURL(one).href.replace(/\/bundle/, ""));
  if (/^(C:|\\)/.test(one)) add(`pathToFileURL windows ${one}`, () => url.pathToFileURL(one, { windows: true }).href);
}
for (const one of ["file:///a%20b", "file:///a%2Fb", "file://host/a", "http://x/", "file:///C:/a%5Cb", "file:///C:/x/y", 5, null]) {
  add(`fileURLToPath ${one}`, () => url.fileURLToPath(one));
  add(`fileURLToPath windows ${one}`, () => url.fileURLToPath(one, { windows: true }));
}

// --- path ---
const WINDOWS = ["", "/", "\\", "\\\\", "\\\\srv", "\\\\srv\\share", "\\\\srv\\share\\x", "//a/b/../c", "\\\\.\\dev", "\\\\?\\C:\\x", "C:", "C:\\", "c:/a/../b", "a:b", "./C:\\x", "x/../C:y", "a\\..\\NUL:", "..\\..", "x\\y\\..\\..\\..", "/../", "a/b:c"];
for (const one of WINDOWS) {
  add(`win32 normalize ${one}`, () => path.win32.normalize(one));
  add(`win32 namespaced ${one}`, () => (/^[A-Za-z]:[\\/]|^\\\\[^.?\\]+\\./.test(one) ? path.win32.toNamespacedPath(one) : ""));
  for (const other of WINDOWS) add(`win32 join ${one} + ${other}`, () => path.win32.join(one, other));
}
const PLACES = ["C:\\a\\b", "C:\\a", "c:\\A\\c", "D:\\a", "\\\\s\\h\\x", "\\\\s\\h\\y\\z", "C:\\"];
for (const one of PLACES) for (const other of PLACES) add(`win32 relative ${one} ${other}`, () => path.win32.relative(one, other));

// --- querystring ---
for (const text of ["\ud801test", "\ud801", "a\udc00b", "x y", 5, true, {}]) add(`escape ${JSON.stringify(text)}`, () => querystring.escape(text));
for (const maxKeys of [0, 1, 2, NaN, Infinity, "1", null]) add(`parse ${maxKeys}`, () => ({ ...querystring.parse("a&b&c&d", null, null, { maxKeys }) }));

// --- events ---
add("events: what an emitter has", () => {
  const emitter = new EventEmitter();
  emitter.on("a", () => {}).once("b", () => {});
  return [Object.keys(emitter), emitter._eventsCount, emitter.eventNames(), typeof emitter._events.a, EventEmitter.prototype.on === EventEmitter.prototype.addListener];
});
add("events: warning of many listeners", async () => {
  const emitter = new EventEmitter().setMaxListeners(1);
  const warned = new Promise((resolve) => process.on("warning", (warning) => warning.name.startsWith("MaxListeners") && resolve(warning)));
  emitter.on("x", () => {}).on("x", () => {});
  const { name, message, type, count } = await warned;
  return [name, message, type, count];
});
add("events: rejections of listeners", async () => {
  const emitter = new EventEmitter({ captureRejections: true });
  const failed = new Promise((resolve) => emitter.on("error", resolve));
  emitter.on("x", async () => {
    throw new Error("late");
  });
  emitter.emit("x");
  return (await failed).message;
});
for (const count of [-1, NaN, "5", null, 0, 3]) add(`events: setMaxListeners ${count}`, () => new EventEmitter().setMaxListeners(count).getMaxListeners());
add("events: limit of a signal", () => getMaxListeners(new AbortController().signal));
for (const value of [5, null, [], "x"]) {
  add(`events: once with options ${JSON.stringify(value)}`, () => once(new EventEmitter(), "x", value));
  add(`events: on with options ${JSON.stringify(value)}`, () => on(new EventEmitter(), "x", value));
}
add("events: throw of an iterator", () => on(new EventEmitter(), "x").throw("text"));

// --- string_decoder ---
const ENCODED = Buffer.from("a\u00e9\u4f60\ud83d\udc4dz");
for (const encoding of ["utf8", "utf16le", "base64", "base64url", "hex", "latin1"]) {
  for (let size = 1; size <= 5; size++) {
    add(`decoder ${encoding} ${size}`, () => {
      const decoder = new StringDecoder(encoding);
      const parts = [];
      for (let at = 0; at < ENCODED.length; at += size) parts.push(decoder.write(ENCODED.subarray(at, at + size)), decoder.lastNeed, decoder.lastTotal);
      return [...parts, decoder.end()];
    });
  }
}
add("decoder of two halves", () => ["3DD84D", "DC"].map((hex) => new StringDecoder("utf16le").write(Buffer.from(hex, "hex"))));

// --- streams of files, lines ---
add("fs: a write behind open does not overtake", async () => {
  const file = fs.createWriteStream("/tmp/atoll-order");
  file.on("open", () => {
    file.write("hello");
    process.nextTick(() => {
      file.write("world");
      file.end();
    });
  });
  await once(file, "close");
  const text = fs.readFileSync("/tmp/atoll-order", "utf8");
  fs.unlinkSync("/tmp/atoll-order");
  return text;
});
add("fs: streams use the given functions", async () => {
  const calls = [];
  const watched = { ...fs, write: (...args) => calls.push("write") && fs.write(...args), writev: null, open: (...args) => calls.push("open") && fs.open(...args), close: (...args) => calls.push("close") && fs.close(...args) };
  const file = fs.createWriteStream("/tmp/atoll-given", { fs: watched, flush: true });
  file.end("x");
  await once(file, "close");
  fs.unlinkSync("/tmp/atoll-given");
  return [calls, file.bytesWritten, file.fd];
});
for (const name of ["open", "write", "close"]) {
  add(`fs: an option without ${name}`, () => fs.createWriteStream("/tmp/x", { fs: { ...fs, [name]: 5, writev: null } }));
}
for (const fd of ["k", {}, true]) add(`fs: a stream of ${typeof fd}`, () => fs.createReadStream(null, { fd }));
add("readline: loops share the lines", async () => {
  const lines = readline.createInterface({ input: Readable.from(["a\nb\n", "c\nd"]) });
  const found = [];
  for await (const line of lines) {
    found.push([line]);
    for await (const inner of lines) found.push(inner);
  }
  return found;
});
add("stream: other views are chunks", async () => {
  const chunks = [];
  const sink = new Writable({ write: (chunk, encoding, done) => done(null, chunks.push([...chunk])) });
  sink.write(new Uint16Array([1, 2]));
  sink.end(new DataView(new ArrayBuffer(2)));
  await once(sink, "finish");
  return chunks;
});
add("crypto: classes without new", () => [crypto.Hash("sha1").update("x").digest("hex"), crypto.Hmac("sha1", "k").update("x").digest("hex"), crypto.ECDH("prime256v1") instanceof crypto.ECDH]);
