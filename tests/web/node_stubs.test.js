// Modules that a worker cannot use: they load, check arguments as Node does and refuse in the words of workerd.
import { Buffer } from "node:buffer";
import * as child_process from "node:child_process";
import cluster, * as clusterModule from "node:cluster";
import console_ from "node:console";
import dgram from "node:dgram";
import domain from "node:domain";
import { EventEmitter } from "node:events";
import http2 from "node:http2";
import inspector from "node:inspector";
import inspectorPromises from "node:inspector/promises";
import module, { createRequire } from "node:module";
import perf_hooks from "node:perf_hooks";
import readline from "node:readline";
import readlinePromises from "node:readline/promises";
import repl from "node:repl";
import sqlite from "node:sqlite";
import { Duplex, PassThrough, Readable } from "node:stream";
import trace_events from "node:trace_events";
import tty from "node:tty";
import v8 from "node:v8";
import vm from "node:vm";
import wasi from "node:wasi";
import * as worker_threads from "node:worker_threads";
import StreamDuplex from "_stream_duplex";
import streamReadable from "node:_stream_readable";
import process from "node:process";
import { deepEqual, equal, ok, throws } from "./assert.js";

const codeOf = (action) => throws(action).code;
const REFUSED = "ERR_METHOD_NOT_IMPLEMENTED";
const TYPE = "ERR_INVALID_ARG_TYPE";
const VALUE = "ERR_INVALID_ARG_VALUE";

export const tests = {
  "child_process": () => {
    const { ChildProcess, exec, fork, spawn, spawnSync } = child_process;
    for (const refused of [() => new ChildProcess(), () => exec("ls"), () => exec("ls", null), () => exec("ls", () => {}), () => fork("a.js", {}), () => spawn(), () => spawnSync("ls")]) {
      equal(codeOf(refused), REFUSED);
    }
    for (const wrong of [() => exec(1), () => exec("ls", "x"), () => exec("ls", {}, "x"), () => fork("a.js", 1), () => fork("a.js", [], "x"), () => spawnSync()]) {
      equal(codeOf(wrong), TYPE);
    }
    equal(throws(() => spawn()).message, "The child_process.spawn method is not implemented");
    deepEqual(Object.keys(child_process.default).sort(), ["ChildProcess", "_forkChild", "exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"].sort());
  },
  "cluster": () => {
    deepEqual([cluster.isPrimary, cluster.schedulingPolicy, cluster.workers, clusterModule.SCHED_NONE], [true, 2, {}, 1]);
    ok(cluster instanceof EventEmitter && cluster instanceof clusterModule.Cluster);
    for (const name of ["fork", "disconnect", "setupPrimary", "setupMaster"]) equal(codeOf(() => cluster[name]()), REFUSED);
    const worker = new cluster.Worker();
    deepEqual([worker.isDead(), worker.send("x"), worker.disconnect() === worker, worker.process === process], [true, false, true, true]);
  },
  "dgram": async () => {
    const socket = dgram.createSocket("udp4", () => {});
    deepEqual([socket.bind(80) === socket, socket.address(), socket.getSendQueueSize(), socket.close() === socket], [true, {}, 0, true]);
    equal(await socket[Symbol.asyncDispose](), undefined);
    for (const wrong of [() => dgram.createSocket(null), () => dgram.createSocket([]), () => dgram.createSocket("udp4", "x"), () => dgram.createSocket("udp4", null)]) {
      equal(codeOf(wrong), TYPE);
    }
  },
  "domain": () => {
    const made = domain.createDomain();
    deepEqual([made.run((a, b) => a + b, 1, 2), domain.active, made.members], [3, null, undefined]);
    const callback = () => {};
    equal(made.bind(callback), callback);
    ok(domain.create instanceof domain.Domain);
    equal(throws(() => made._errorHandler(new Error("x"))).message, "x");
  },
  "http2": () => {
    deepEqual([http2.constants.HTTP2_HEADER_STATUS, http2.constants.HTTP_STATUS_TEAPOT, http2.constants.NGHTTP2_CANCEL, http2.constants.HTTP2_METHOD_VERSION_CONTROL], [":status", 418, 8, "VERSION-CONTROL"]);
    equal(Object.keys(http2.constants).length, 240);
    for (const name of ["connect", "createServer", "createSecureServer", "performServerHandshake"]) equal(codeOf(() => http2[name]()), REFUSED);
    equal(http2.getDefaultSettings().maxFrameSize, 16384);
  },
  "inspector": async () => {
    equal(codeOf(() => new inspector.Session()), REFUSED);
    ok(throws(() => inspector.Network.dataReceived({})).message.includes("Network.dataReceived"));
    deepEqual([inspector.url(), inspector.close(), inspector.console.log("x"), await inspector.open()[Symbol.dispose]()], [undefined, undefined, undefined, undefined]);
    equal(typeof inspectorPromises.Session, "function");
  },
  "readline without an input is silent": async () => {
    deepEqual([readline.clearLine(), readline.cursorTo(1, 2), readline.emitKeypressEvents()], [false, false, undefined]);
    const silent = readline.createInterface();
    deepEqual([silent.terminal, silent.line, silent.getPrompt(), silent.getCursorPos()], [false, "", "", { rows: 0, cols: 0 }]);
    let answer;
    silent.question("?", (text) => (answer = text));
    equal(answer, "");
    equal(await readlinePromises.createInterface().question("?"), "");
    equal(await new readline.promises.Readline().clearLine(0).commit(), undefined);
  },
  "readline reads lines of a stream": async () => {
    const read = async (...chunks) => {
      const lines = [];
      for await (const line of readline.createInterface({ input: Readable.from(chunks.map((each) => Buffer.from(each))), crlfDelay: Infinity })) lines.push(line);
      return lines;
    };
    deepEqual(await read("one\ntwo\r", "\nthr", "ee\n\nlast"), ["one", "two", "three", "", "last"]);
    deepEqual(await read("a\n"), ["a"]);
    deepEqual(await read("a\rb\r"), ["a", "b"]);
    const events = [];
    await new Promise((resolve) => {
      const input = new PassThrough();
      readline.createInterface(input).on("line", (line) => events.push(line)).on("close", resolve);
      input.end("x\ny");
    });
    deepEqual(events, ["x", "y"]);
  },
  "repl": () => {
    equal(throws(() => repl.start()).message, "The start method is not implemented");
    const error = new Error("x");
    const recoverable = new repl.Recoverable(error);
    ok(recoverable instanceof SyntaxError && recoverable.err === error);
    ok(repl.builtinModules.includes("fs") && repl.builtinModules.every((name) => name[0] !== "_"));
    equal(repl._builtinLibs, repl.builtinModules);
    equal(codeOf(() => new repl.REPLServer()), REFUSED);
  },
  "sqlite, trace_events and tty": () => {
    equal(throws(() => new sqlite.DatabaseSync("x"), TypeError).message, "Illegal constructor");
    equal(codeOf(() => sqlite.backup()), REFUSED);
    const tracing = trace_events.createTracing({ categories: ["node", "v8"] });
    tracing.enable();
    deepEqual([tracing.categories, tracing.enabled, trace_events.getEnabledCategories()], ["node,v8", true, ""]);
    equal(codeOf(() => trace_events.createTracing({ categories: [] })), "ERR_TRACE_EVENTS_CATEGORY_REQUIRED");
    const write = new tty.WriteStream(1);
    deepEqual([tty.isatty(1), write.isTTY, write.getColorDepth(), write.hasColors(), write.getWindowSize()], [false, true, 8, false, [0, 0]]);
    let called = false;
    equal(write.cursorTo(0, () => (called = true)), false);
    ok(called && new tty.ReadStream(0).setRawMode(true).isRaw);
  },
  "v8": () => {
    deepEqual([v8.getHeapStatistics().used_heap_size, v8.getHeapSpaceStatistics(), v8.getCppHeapStatistics("brief").detail_level], [0, [], "brief"]);
    equal(codeOf(() => v8.getCppHeapStatistics("x")), VALUE);
    for (const refused of [() => v8.serialize({}), () => new v8.Serializer(), () => v8.writeHeapSnapshot(), () => v8.setFlagsFromString("--x"), () => v8.promiseHooks.onInit(), () => new v8.GCProfiler().start()]) {
      equal(codeOf(refused), REFUSED);
    }
    for (const wrong of [() => v8.writeHeapSnapshot(1), () => v8.getHeapSnapshot("x"), () => v8.setFlagsFromString(), () => v8.queryObjects("x")]) equal(codeOf(wrong), TYPE);
    equal(codeOf(() => v8.setHeapSnapshotNearHeapLimit(-1)), "ERR_OUT_OF_RANGE");
    equal(v8.startupSnapshot.isBuildingSnapshot(), false);
  },
  "vm": () => {
    for (const refused of [() => new vm.Script("1").runInThisContext(), () => vm.runInThisContext("1"), () => vm.runInNewContext("1", {}), () => vm.compileFunction("1"), () => vm.measureMemory()]) {
      equal(codeOf(refused), REFUSED);
    }
    for (const wrong of [() => vm.isContext(1), () => new vm.Script("1", { filename: 1 }), () => vm.createContext({}, { name: 1 }), () => vm.runInContext("1", {}), () => vm.compileFunction(1)]) {
      equal(codeOf(wrong), TYPE);
    }
    equal(codeOf(() => vm.createContext({}, { microtaskMode: "x" })), VALUE);
    equal(vm.isContext({}), false);
    const made = { a: 1 };
    equal(vm.createContext(made), made);
    ok(vm.isContext(made) && vm.isContext(vm.createContext()));
    equal(codeOf(() => vm.runInContext("1", made)), REFUSED);
  },
  "wasi": () => {
    for (const options of [undefined, {}, { version: "preview1", args: [], env: {}, stdin: 0, returnOnExit: true }]) equal(codeOf(() => new wasi.WASI(options)), REFUSED);
    for (const options of ["x", null, { version: "unstable", args: "x" }, { version: "unstable", env: [] }, { version: "unstable", returnOnExit: 1 }]) equal(codeOf(() => new wasi.WASI(options)), TYPE);
    for (const version of ["x", null, 1]) equal(codeOf(() => new wasi.WASI({ version })), VALUE);
    equal(codeOf(() => new wasi.WASI({ version: "unstable", stdin: -1 })), "ERR_OUT_OF_RANGE");
    deepEqual(wasi.WASI.prototype.getImportObject.call({}), {});
  },
  "worker_threads": async () => {
    const { getEnvironmentData, MessageChannel, receiveMessageOnPort, setEnvironmentData, Worker } = worker_threads;
    equal(codeOf(() => new Worker("x.js")), REFUSED);
    equal(codeOf(() => new worker_threads.BroadcastChannel("x")), REFUSED);
    equal(MessageChannel, globalThis.MessageChannel);
    equal(receiveMessageOnPort(new MessageChannel().port1), undefined);
    setEnvironmentData("a", { b: 1 });
    deepEqual([getEnvironmentData("a"), worker_threads.isMainThread, worker_threads.threadId, worker_threads.workerData], [{ b: 1 }, true, 0, null]);
    equal(await Worker.prototype.terminate.call({}).catch((error) => error.code), REFUSED);
  },
  "console, perf_hooks and module": () => {
    for (const name of ["Console", "context", "createTask"]) equal(codeOf(() => console_[name]()), REFUSED);
    for (const name of ["log", "profile", "timeStamp", "group", "groupEnd"]) console_[name]("x");
    equal(codeOf(() => perf_hooks.createHistogram()), REFUSED);
    deepEqual([perf_hooks.performance === performance, perf_hooks.constants.NODE_PERFORMANCE_GC_MAJOR], [true, 4]);
    deepEqual(Object.keys(module.Module.prototype), ["load", "require", "_compile", "isPreloading"]);
    for (const name of ["register", "registerHooks", "findSourceMap", "stripTypeScriptTypes"]) equal(codeOf(() => module[name]()), REFUSED);
  },
  "aliases, with and without node:": () => {
    equal(StreamDuplex, Duplex);
    equal(streamReadable, Readable);
    const require = createRequire(import.meta.url ?? "file:///x");
    for (const name of module.builtinModules) {
      ok(require(name) !== undefined, name);
      if (!name.startsWith("node:")) equal(require(`node:${name}`), require(name));
      equal(process.getBuiltinModule(name), require(name));
    }
    for (const name of ["_http_agent", "_http_common", "_http_server", "_stream_writable", "_stream_wrap", "_tls_common", "inspector/promises", "sys"]) ok(module.isBuiltin(name), name);
  },
};
