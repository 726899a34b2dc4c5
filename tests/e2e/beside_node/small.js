/* eslint-disable no-sparse-arrays */
import assert from "node:assert";
import { EventEmitter, once } from "node:events";
import path from "node:path";
import querystring from "node:querystring";
import * as url from "node:url";
import { table } from "./run.js";

const PATHS = ["", "/", ".", "..", "a", "/a/b", "a/b/", "/a/../b/./c//d", "../../x", "//a", "a.txt", ".hidden", "a.b.c", "a.", "/dir/file.ext/", "C:\\a\\b", "c:x", "\\\\server\\share\\x", "a\\b/c"];
const paths = {};
for (const [kind, flavour] of Object.entries({ posix: path.posix, win32: path.win32 })) {
  for (const one of PATHS) {
    for (const name of ["basename", "dirname", "extname", "normalize", "isAbsolute", "parse"]) paths[`${kind}.${name} ${one}`] = () => flavour[name](one);
    if (one !== "/") paths[`${kind}.basename ext ${one}`] = () => [flavour.basename(one, ".txt"), flavour.basename(one, "b"), flavour.basename(one, one)];
    paths[`${kind}.format ${one}`] = () => flavour.format(flavour.parse(one));
    paths[`${kind}.matchesGlob ${one}`] = () => flavour.matchesGlob?.(one, "a*");
  }
  paths[`${kind}.join number`] = () => flavour.join("a", 5);
  paths[`${kind}.constants`] = () => [flavour.sep, flavour.delimiter];
}

// For win32 only functions without a working folder, which is on another drive here.
for (const one of PATHS) {
  for (const other of PATHS) paths[`join ${one} + ${other}`] = () => path.join(one, other);
  paths[`relative ${one}`] = () => [path.relative("/a/b/c", one === "" ? "/" : path.resolve("/", one)), path.resolve("/base", one)];
}

const URLS = ["http://user:pass@sub.example.com:8080/p/a/t/h?query=string#hash", "/relative?x=1", "mailto:a@b.c", "//host/path", "javascript:alert(1)", "HTTP://EXAMPLE.com", "http://a.com?b", "http://a.com#b", "http://[::1]:80/x", "x:y", "", "http://a.com/ b", "http://a.com/{x}|y", "http://\u00e9.com/", "file:///etc/x", "http://a.com:99999/"];
const OPAQUE = /^(mailto|javascript|x):/;
const legacy = {};
for (const one of URLS) {
  legacy[`parse ${one}`] = () => ({ ...url.parse(one) });
  legacy[`parse query ${one}`] = () => ({ ...url.parse(one, true).query });
  legacy[`parse slashes ${one}`] = () => ({ ...url.parse(one, false, true) });
  legacy[`format ${one}`] = () => url.format(url.parse(one));
  if (URL.canParse(one)) legacy[`urlToHttpOptions ${one}`] = () => ({ ...url.urlToHttpOptions(new URL(one)) });
  if (one === "" || OPAQUE.test(one)) continue;
  for (const other of [...URLS, "../up?y", "./", "..", "a/../b", "?only", "#only", "//other"]) legacy[`resolve ${one} + ${other}`] = () => url.resolve(one, other);
}

const QUERIES = ["", "a=1", "a=1&a=2&b", "a=%20+b", "%E4=%", "=x", "a==b", "&&", "a=1;b=2", "%u0041=1", "\u00e9=\u20ac", "__proto__=1&toString=2"];
const thrown = (body) => {
  try {
    body();
    return "nothing";
  } catch (error) {
    return [error.name, error.code, error.message, error.generatedMessage, error.operator];
  }
};
const PAIRS = [[1, 1], [1, "1"], [NaN, NaN], [{ a: 1 }, { a: 1 }], [{ a: 1 }, { a: "1" }], [[1, 2], [1, 3]], [new Map([[1, { a: 1 }]]), new Map([[1, { a: 1 }]])], [new Set([{ a: 1 }]), new Set([{ a: 1 }])], [new Set([1]), new Set(["1"])], [new Date(0), new Date(0)], [/a/g, /a/i], [null, undefined], [-0, 0], [[1, , 3], [1, undefined, 3]], [new Error("a"), new Error("a")], [new Error("a"), new Error("b")], [Object.create(null), {}], ["a\nb\nc", "a\nx\nc"], [{ a: { b: { c: 1 } } }, { a: { b: { c: 2 } } }], [Symbol.for("a"), Symbol.for("a")], [new Uint8Array([1]), new Uint8Array([1])], [Object(1), Object(1)], [1n, 1]];
const assertions = {};
for (const [index, [left, right]] of PAIRS.entries()) {
  for (const name of ["equal", "notEqual", "strictEqual", "notStrictEqual", "deepEqual", "notDeepEqual", "deepStrictEqual", "notDeepStrictEqual"]) {
    // Messages with a diff are for people: only the failure and its class are compared.
    assertions[`assert.${name} ${index}`] = () => thrown(() => assert[name](left, right)).toString().split(",").slice(0, 2);
  }
}

function recorder() {
  const emitter = new EventEmitter();
  const log = [];
  return { emitter, log, note: (name) => (...args) => log.push([name, ...args]) };
}

export const cases = {
  ...paths,
  ...legacy,
  ...assertions,
  ...table("querystring.parse", (text, ...rest) => ({ ...querystring.parse(text, ...rest) }), ...QUERIES.map((text) => [text]), ["a:1;b:2", ";", ":"], ["a=1&b=2&c=3", null, null, { maxKeys: 2 }], ["a=%zz", "&", "=", { decodeURIComponent: () => { throw new Error("x"); } }], [5], ["a=1", "", ""]),
  ...table("querystring.stringify", (...args) => querystring.stringify(...args), [{ a: 1, b: [1, 2], c: "x y", d: true, e: null, f: undefined, g: {}, h: NaN, i: 5n, j: "\u20ac" }], [{ a: 1, b: 2 }, ";", ":"], ["x"], [null], [{ a: "\ud800" }], [{ "a b": "c&d" }, "&", "=", { encodeURIComponent: (text) => `<${text}>` }]),
  ...table("querystring.escape", (text) => [querystring.escape(text), querystring.unescape(String(text))], ["a b&c"], ["%41%zz"], [5], ["!'()*~-_."]),
  ...table("url.format", (value, ...rest) => url.format(value, ...rest), [{ protocol: "http", host: "a.com", pathname: "x", search: "y", hash: "z" }], [{ hostname: "::1", port: 80, protocol: "http:" }], [{ query: { a: [1, 2] } }], [new URL("http://u:p@\u00e9.com/x?y#z"), { auth: false, unicode: true, fragment: false, search: false }], [5], [null], [{}]),
  ...table("fileURLToPath", (value) => url.fileURLToPath(value), ["file:///a/b%20c"], ["file:///a%2fb"], ["http://a/b"], ["file://host/a"], [5]),
  ...table("pathToFileURL", (value) => url.pathToFileURL(value).href, ["/a b/#c?d%"], ["/a/"], ["/\u00e9\n"], ["/a\\b"]),
  ...table("domainTo", (text) => [url.domainToASCII(text), url.domainToUnicode(text)], ["\u00e9.com"], ["xn--9ca.com"], ["a b"], [""]),
  ...table("assert throws", (...args) => thrown(() => assert.throws(...args)), [() => {}], [() => { throw new TypeError("x"); }, TypeError], [() => { throw new Error("abc"); }, /b/], [() => { throw new Error("abc"); }, { message: "abc" }], [() => { throw new Error("abc"); }, { message: /b/, name: "Error" }], [5], [() => {}, "message"], [() => {}, TypeError]),
  ...table("assert others", (name, ...args) => thrown(() => assert[name](...args)), ["ok", 0, "own message"], ["ok", 1], ["fail", "failed"], ["fail"], ["ifError", null], ["ifError", undefined], ["match", "abc", /x/, "no match"], ["match", "abc", /b/], ["doesNotMatch", "abc", /b/, "matches"], ["doesNotThrow", () => {}], ["equal", 1, 2, new TypeError("own error")], ["deepEqual", 1, 2, "deep"], ["strictEqual"], ["partialDeepStrictEqual", { a: 1, b: 2 }, { a: 1 }]),
  "assert rejects": async () => [await assert.rejects(Promise.reject(new Error("x")), /x/), await assert.rejects(Promise.resolve(1)).catch((error) => [error.name, error.code, error.message])],
  "assert as a function": () => thrown(() => assert(false, "said")),
  "AssertionError": () => {
    const error = new assert.AssertionError({ actual: 1, expected: 2, operator: "strictEqual" });
    return [error.name, error.code, error.message, error.actual, error.expected, error.operator, error.generatedMessage];
  },
  "events order": () => {
    const { emitter, log, note } = recorder();
    emitter.on("x", note("on")).once("x", note("once")).prependListener("x", note("first"));
    return [emitter.emit("x", 1), emitter.emit("x", 2), emitter.emit("y"), log, emitter.eventNames(), emitter.listenerCount("x")];
  },
  "events newListener": () => {
    const { emitter, log, note } = recorder();
    emitter.on("newListener", note("new")).on("removeListener", note("removed"));
    const listener = () => {};
    emitter.on("a", listener).off("a", listener).off("a", listener);
    return log.map(([name, type]) => [name, type]);
  },
  "events error": () => new EventEmitter().emit("error", new RangeError("unheard")),
  "events error of another kind": () => new EventEmitter().emit("error", { a: 1 }),
  "events error without value": () => new EventEmitter().emit("error"),
  "events remove while emitting": () => {
    const { emitter, log, note } = recorder();
    const second = note("second");
    emitter.on("x", () => emitter.off("x", second)).on("x", second);
    emitter.emit("x");
    emitter.emit("x");
    return log;
  },
  "events limits": () => {
    const emitter = new EventEmitter();
    return [emitter.getMaxListeners(), emitter.setMaxListeners(3).getMaxListeners(), EventEmitter.defaultMaxListeners];
  },
  "events bad limit": () => new EventEmitter().setMaxListeners(-1),
  "events bad listener": () => new EventEmitter().on("x", 5),
  "events rawListeners": () => {
    const emitter = new EventEmitter();
    const listener = () => {};
    emitter.once("x", listener);
    return [emitter.rawListeners("x")[0].listener === listener, emitter.listeners("x")[0] === listener];
  },
  "events once": async () => {
    const emitter = new EventEmitter();
    queueMicrotask(() => emitter.emit("x", 1, 2));
    return once(emitter, "x");
  },
  "events once fails": async () => {
    const emitter = new EventEmitter();
    queueMicrotask(() => emitter.emit("error", new Error("broke")));
    return once(emitter, "x");
  },
  "events once aborted": () => once(new EventEmitter(), "x", { signal: AbortSignal.abort() }),
  "events captured rejections": () => new Promise((resolve) => {
    const emitter = new EventEmitter({ captureRejections: true });
    emitter.on("error", (error) => resolve(error.message)).on("x", async () => {
      throw new Error("caught");
    });
    emitter.emit("x");
  }),
  "events removeAllListeners": () => {
    const emitter = new EventEmitter();
    emitter.on("a", () => {}).on("b", () => {});
    emitter.removeAllListeners("a");
    const left = emitter.eventNames();
    emitter.removeAllListeners();
    return [left, emitter.eventNames()];
  },
  "events symbols": () => {
    const emitter = new EventEmitter();
    emitter.on(Symbol.for("s"), () => {});
    return emitter.eventNames().map(String);
  },
  "events statics": () => ["once", "on", "getEventListeners", "getMaxListeners", "setMaxListeners", "addAbortListener", "listenerCount"].filter((key) => typeof EventEmitter[key] === "function"),
};
