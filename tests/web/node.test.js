// The built-in modules under their names: https://nodejs.org/api/
import assert from "node:assert";
import assertStrict from "node:assert/strict";
import { Buffer } from "node:buffer";
import consoleModule from "node:console";
import dc from "node:diagnostics_channel";
import EventEmitter, { on, once } from "node:events";
import path, { posix, win32 } from "node:path";
import process, { env, nextTick } from "node:process";
import punycode from "node:punycode";
import querystring from "node:querystring";
import * as streamWeb from "node:stream/web";
import { StringDecoder } from "node:string_decoder";
import timers from "node:timers";
import { setInterval as every, setTimeout as wait } from "node:timers/promises";
import url from "node:url";
import util, { inspect, promisify } from "node:util";
import types from "node:util/types";
import { Buffer as BareBuffer } from "buffer";
import { AsyncLocalStorage } from "async_hooks";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

export const tests = {
  "names with and without node: are the same module": async () => {
    equal(BareBuffer, Buffer);
    equal((await import("node:buffer")).Buffer, Buffer);
    equal(process.getBuiltinModule("node:buffer").Buffer, Buffer);
    equal(process.getBuiltinModule("sea"), undefined);
    equal(await import("path").then((module) => module.default), path);
  },
  "a missing module has a clear error": async () => {
    const error = await rejects(import("node:sea"), TypeError);
    ok(error.message.includes('"node:sea"') && error.message.includes("node:buffer"), error.message);
    ok((await rejects(import("sea"), TypeError)).message.includes("node:sea"));
    ok((await rejects(import("lodash"), TypeError)).message.includes("bundled"));
    ok((await rejects(import("cloudflare:nothing"), TypeError)).message.includes("cloudflare:workers"));
    ok((await rejects(import("./nothing.js"), TypeError)).message.includes("deployed"));
  },
  "events": async () => {
    const emitter = new EventEmitter();
    const log = [];
    emitter.on("x", (...args) => log.push(["on", ...args]));
    emitter.prependListener("x", () => log.push(["first"]));
    emitter.once("x", () => log.push(["once"]));
    equal(emitter.emit("x", 1, 2), true);
    emitter.emit("x");
    deepEqual(log, [["first"], ["on", 1, 2], ["once"], ["first"], ["on"]]);
    equal(emitter.emit("y"), false);
    deepEqual([emitter.listenerCount("x"), emitter.eventNames().length], [2, 1]);
    emitter.removeAllListeners("x");
    equal(emitter.listenerCount("x"), 0);
    throws(() => emitter.emit("error", new RangeError("e")), RangeError);
    equal(throws(() => emitter.emit("error", 5)).code, "ERR_UNHANDLED_ERROR");
    equal(throws(() => emitter.on("x", 5)).code, "ERR_INVALID_ARG_TYPE");
    const promise = once(emitter, "z");
    emitter.emit("z", 1, 2);
    deepEqual(await promise, [1, 2]);
    const failing = once(emitter, "z");
    emitter.emit("error", new RangeError("f"));
    await rejects(failing, RangeError);
    const target = new EventTarget();
    const event = once(target, "t");
    target.dispatchEvent(new Event("t"));
    equal((await event)[0].type, "t");
    const iterator = on(emitter, "i");
    emitter.emit("i", 1);
    emitter.emit("i", 2);
    deepEqual([(await iterator.next()).value, (await iterator.next()).value], [[1], [2]]);
    await iterator.return();
    equal(emitter.listenerCount("i"), 0);
    await rejects(once(emitter, "q", { signal: AbortSignal.abort() }), "AbortError");
    class Sub extends EventEmitter {
      #secret = 1;
      get secret() { return this.#secret; }
    }
    equal(new Sub().on("a", () => {}).secret, 1);
    function Old() { EventEmitter.call(this); }
    util.inherits(Old, EventEmitter);
    equal(new Old().on("a", () => {}).emit("a"), true);
    deepEqual(Object.keys(new EventEmitter()), ["_events", "_eventsCount", "_maxListeners"]); // as in Node
  },
  "path, posix": () => {
    equal(path, posix);
    for (const [parts, expected] of [
      [["/a", "b", "../c"], "/a/c"], [["a", "..", ".."], ".."], [[], "."], [["/", ".."], "/"], [["a//b/"], "a/b/"], [["./x"], "x"],
    ]) equal(posix.join(...parts), expected);
    deepEqual(["/a/b/c.txt", "a", "/", "/a", "a/b/", ""].map((p) => posix.dirname(p)), ["/a/b", ".", "/", "/", "a", "."]);
    deepEqual(["/a/b.txt", "/a/b/", "/", ""].map((p) => posix.basename(p)), ["b.txt", "b", "", ""]);
    equal(posix.basename("a.html", ".html"), "a");
    deepEqual(["a.b.c", ".bashrc", "a.", "..", "a/.b/c"].map((p) => posix.extname(p)), [".c", "", ".", "", ""]);
    equal(posix.resolve("/a", "b", "../c"), "/a/c");
    equal(posix.resolve("a"), "/bundle/a");
    equal(posix.relative("/a/b/c", "/a/d"), "../../d");
    equal(posix.relative("/a", "/a"), "");
    deepEqual(posix.parse("/home/u/f.txt"), { root: "/", dir: "/home/u", base: "f.txt", ext: ".txt", name: "f" });
    equal(posix.format({ dir: "/a", name: "b", ext: "c" }), "/a/b.c");
    equal(posix.normalize("/../a/./b//../c/"), "/a/c/");
    deepEqual([posix.isAbsolute("/a"), posix.isAbsolute("a"), posix.sep, posix.delimiter], [true, false, "/", ":"]);
    equal(throws(() => posix.join(5)).code, "ERR_INVALID_ARG_TYPE");
    deepEqual([posix.matchesGlob("a/b/c.js", "a/**/*.js"), posix.matchesGlob("a/b.ts", "*.js")], [true, false]);
  },
  "path, win32": () => {
    equal(win32.join("C:\\a", "..", "b"), "C:\\b");
    equal(win32.normalize("C:/a//b/../c"), "C:\\a\\c");
    equal(win32.resolve("C:\\a", "..\\b"), "C:\\b");
    equal(win32.basename("C:\\a\\b.txt"), "b.txt");
    equal(win32.dirname("C:\\a\\b"), "C:\\a");
    deepEqual([win32.isAbsolute("C:\\"), win32.isAbsolute("C:a"), win32.isAbsolute("\\\\s\\d\\")], [true, false, true]);
    deepEqual(win32.parse("C:\\p\\f.t"), { root: "C:\\", dir: "C:\\p", base: "f.t", ext: ".t", name: "f" });
    equal(win32.relative("C:\\a\\b", "c:\\A\\d"), "..\\d");
  },
  "querystring": () => {
    deepEqual({ ...querystring.parse("a=1&b=2&a=3&c&d=%20+x&e=%zz") }, { a: ["1", "3"], b: "2", c: "", d: "  x", e: "%zz" });
    equal(querystring.stringify({ a: [1, 2], b: "x y", c: true, d: null, e: NaN }), "a=1&a=2&b=x%20y&c=true&d=&e=");
    equal(querystring.stringify({ a: 1, b: 2 }, ";", ":"), "a:1;b:2");
    equal(querystring.unescape("%E4%BD"), "\ufffd");
    equal(Object.getPrototypeOf(querystring.parse("__proto__=1")), null);
  },
  "string_decoder": () => {
    const decoder = new StringDecoder("utf8");
    equal(decoder.write(Buffer.from([0xe2, 0x82])), "");
    equal(decoder.write(Buffer.from([0xac, 0x41])), "€A");
    equal(decoder.write(Buffer.from([0xf0, 0x9f])), "");
    equal(decoder.end(), "\ufffd");
    const wide = new StringDecoder("utf16le");
    equal(wide.write(Buffer.from([0x61])) + wide.write(Buffer.from([0, 0x3d, 0xd8])) + wide.write(Buffer.from([0x00, 0xde])), "a😀");
    const base = new StringDecoder("base64");
    equal(base.write(Buffer.from("a")) + base.end(Buffer.from("bc")), "YWJj");
    equal(throws(() => new StringDecoder("nope")).code, "ERR_UNKNOWN_ENCODING");
  },
  "timers": async () => {
    await new Promise((resolve) => timers.setTimeout(resolve, 1)); // unlike the global function, it may be called on an object
    equal(await wait(1, "value"), "value");
    await rejects(wait(1000, null, { signal: AbortSignal.timeout(2) }), "AbortError");
    let count = 0;
    for await (const value of every(1, "tick")) {
      equal(value, "tick");
      if (++count === 3) break;
    }
    await timers.promises.setImmediate();
    await timers.promises.scheduler.wait(1);
  },
  "process": async () => {
    equal(process.platform, "linux");
    ok(/^v\d+\./.test(process.version));
    equal(env, process.env);
    equal(env.TEXT, "hello");
    equal(env.NUMBER, "5");
    process.env.NEW = "x";
    equal(env.NEW, "x");
    const log = [];
    await new Promise((resolve) => { nextTick((x) => { log.push(x); resolve(); }, "tick"); log.push("sync"); });
    deepEqual(log, ["sync", "tick"]);
    equal(process.cwd(), "/bundle");
    deepEqual(process.hrtime().map((n) => typeof n), ["number", "number"]);
    equal(typeof process.hrtime.bigint(), "bigint");
    throws(() => process.exit(1), Error);
    process.on("exit", () => {});
    equal(globalThis.process, process);
    equal(globalThis.Buffer, Buffer);
    equal(globalThis.global, globalThis);
    deepEqual(Object.keys(globalThis).filter((name) => ["process", "Buffer", "global"].includes(name)), []);
  },
  "url": () => {
    equal(url.URL, URL);
    equal(url.fileURLToPath("file:///a%20b"), "/a b");
    equal(url.pathToFileURL("/a b#?").href, "file:///a%20b%23%3F");
    equal(url.domainToASCII("español.com"), "xn--espaol-zwa.com");
    equal(url.domainToUnicode("xn--espaol-zwa.com"), "español.com");
    const parsed = url.parse("https://u:p@Host.com:8080/p/a?q=1#h", true);
    deepEqual([parsed.protocol, parsed.auth, parsed.host, parsed.port, parsed.pathname, { ...parsed.query }, parsed.hash],
      ["https:", "u:p", "host.com:8080", "8080", "/p/a", { q: "1" }, "#h"]);
    equal(parsed.href, "https://u:p@host.com:8080/p/a?q=1#h");
    equal(url.format({ protocol: "http", hostname: "a", pathname: "b", query: { c: 1 } }), "http://a/b?c=1");
    equal(url.resolve("/one/two/three", "four"), "/one/two/four");
    equal(url.resolve("http://a.com/b", "../c"), "http://a.com/c");
    equal(url.urlToHttpOptions(new URL("http://a:1/b?c")).port, 1);
    equal(url.format(new URL("http://u:p@a/#x"), { auth: false, fragment: false }), "http://a/");
  },
  "util": async () => {
    equal(util.format("%s:%d:%j", "a", 1, { x: 1 }, "rest"), 'a:1:{"x":1} rest');
    equal(inspect({ a: { b: { c: { d: 1 } } } }), "{ a: { b: { c: [Object] } } }");
    equal(inspect({ a: { b: { c: { d: 1 } } } }, { depth: null, compact: true, breakLength: Infinity }), "{ a: { b: { c: { d: 1 } } } }");
    equal(inspect({ [inspect.custom]: () => "mine" }), "mine");
    equal(inspect({ [inspect.custom]: () => ({ a: 1 }) }), "{ a: 1 }");
    equal(inspect(Buffer.from("ab")), "<Buffer 61 62>");
    equal(await promisify((x, done) => done(null, x + 1))(1), 2);
    await rejects(promisify((done) => done(new RangeError("x")))(), RangeError);
    equal(await new Promise((resolve) => util.callbackify(async (x) => x * 2)(4, (error, value) => resolve(value))), 8);
    equal(util.isDeepStrictEqual({ a: [1, new Map([[1, { b: 2 }]])] }, { a: [1, new Map([[1, { b: 2 }]])] }), true);
    equal(util.isDeepStrictEqual([1], ["1"]), false);
    equal(util.types, types);
    deepEqual([types.isDate(new Date()), types.isMap({}), types.isProxy(new Proxy({}, {})), types.isAsyncFunction(async () => {}),
      types.isUint8Array(Buffer.alloc(1)), types.isNativeError(new TypeError("x")), types.isBoxedPrimitive(Object(1n)),
      types.isGeneratorFunction(function* () {})], [true, false, true, true, true, true, true, true]);
    const { buffer } = new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true });
    deepEqual([buffer, new ArrayBuffer(1), new Uint8Array(1), {}, null].map((value) => [types.isSharedArrayBuffer(value), types.isAnyArrayBuffer(value)]),
      [[true, true], [false, true], [false, false], [false, false], [false, false]]);
    equal(util.stripVTControlCharacters("\u001b[31mred\u001b[0m"), "red");
    equal(util.TextEncoder, TextEncoder);
    equal(util.deprecate((x) => x, "old")(1), 1);
  },
  "assert": async () => {
    assert(true);
    assert.equal(1, "1");
    assert.deepEqual({ a: 1 }, { a: "1" });
    assertStrict.deepEqual({ a: [1, { b: new Set([1]) }] }, { a: [1, { b: new Set([1]) }] });
    const error = throws(() => assert.strictEqual(1, 2), assert.AssertionError);
    deepEqual([error.code, error.actual, error.expected, error.operator, error.message],
      ["ERR_ASSERTION", 1, 2, "strictEqual", "Expected values to be strictly equal:\n\n1 !== 2\n"]);
    equal(throws(() => assert(0, "mine")).message, "mine");
    throws(() => assertStrict.equal(1, "1"), assert.AssertionError);
    throws(() => assert.deepStrictEqual({ a: 1 }, { a: 1, b: undefined }), assert.AssertionError);
    throws(() => assert.deepStrictEqual([0], [-0]), assert.AssertionError);
    assert.throws(() => { throw new TypeError("bad"); }, TypeError);
    assert.throws(() => { throw new TypeError("bad"); }, /bad/);
    assert.throws(() => { throw new TypeError("bad"); }, { name: "TypeError", message: "bad" });
    throws(() => assert.throws(() => {}), assert.AssertionError);
    await assert.rejects(Promise.reject(new Error("x")), /x/);
    await assert.doesNotReject(async () => {});
    assert.match("abc", /b/);
    assert.ifError(null);
    const cycle = {};
    cycle.self = cycle;
    const other = {};
    other.self = other;
    assert.deepStrictEqual(cycle, other);
  },
  "diagnostics_channel": async () => {
    const channel = dc.channel("a");
    const seen = [];
    equal(channel.hasSubscribers, false);
    const listen = (message, name) => seen.push([message, name]);
    dc.subscribe("a", listen);
    channel.publish(1);
    equal(dc.unsubscribe("a", listen), true);
    channel.publish(2);
    deepEqual(seen, [[1, "a"]]);
    const storage = new AsyncLocalStorage();
    channel.bindStore(storage, (x) => x * 2);
    equal(channel.runStores(4, () => storage.getStore()), 8);
    const traced = [];
    const tracing = dc.tracingChannel("t");
    tracing.subscribe({ start: () => traced.push("start"), end: () => traced.push("end"), asyncEnd: () => traced.push("asyncEnd") });
    equal(await tracing.tracePromise(async () => 3), 3);
    deepEqual(traced, ["start", "end", "asyncEnd"]);
  },
  "small modules of node:": () => {
    equal(consoleModule, console);
    equal(streamWeb.ReadableStream, ReadableStream);
    equal(punycode.encode("mañana"), "maana-pta");
    equal(punycode.decode("maana-pta"), "mañana");
    equal(punycode.toASCII("bücher.example"), "xn--bcher-kva.example");
    equal(punycode.toUnicode("xn--bcher-kva.example"), "bücher.example");
  },
};
