import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import constants from "node:constants";
import * as namespace from "node:process";
import process from "node:process";
import { deepEqual, equal, ok, throws } from "./assert.js";

const codeOf = (action) => throws(action).code;
process.chdir("/");
const atStart = [process.cwd(), fs.readdirSync(".")];

export const tests = {
  "all forms of the module are one object": () => {
    equal(namespace.default, process);
    equal(process.getBuiltinModule("process"), process);
    equal(process.getBuiltinModule("node:process"), process);
    equal(process.getBuiltinModule("node:nothing"), undefined);
    deepEqual(Object.keys(namespace).filter((name) => name !== "default"), Object.keys(process).sort());
    equal(Object.prototype.toString.call(process), "[object process]");
    for (const name of ["nextTick", "loadEnvFile", "report", "finalization", "permission", "_events", "exitCode"]) ok(name in namespace, name);
  },
  "variables are strings": () => {
    equal(process.env.TEXT, "hello");
    equal(process.env.NUMBER, "5");
    process.env.A = 1;
    equal(process.env.A, "1");
    process.env.A = undefined;
    equal(process.env.A, "undefined");
    delete process.env.A;
    equal("A" in process.env, false);
    const symbol = Symbol("s");
    equal(process.env[symbol], undefined);
    throws(() => (process.env[symbol] = 1), TypeError);
    throws(() => (process.env.A = symbol), TypeError);
    equal(codeOf(() => Object.defineProperty(process.env, "A", { value: "x" })), "ERR_INVALID_ARG_VALUE");
    equal(codeOf(() => Object.defineProperty(process.env, "A", { get: () => "x" })), "ERR_INVALID_ARG_VALUE");
    Object.defineProperty(process.env, "A", { value: "x", configurable: true, writable: true, enumerable: true });
    equal(process.env.A, "x");
  },
  "the working directory belongs to the call": () => {
    deepEqual(atStart, ["/", ["bundle", "tmp", "dev"]]);
    equal(process.cwd(), "/bundle");
    process.chdir("/tmp");
    fs.writeFileSync("here.txt", "x");
    deepEqual([process.cwd(), path.resolve("a"), fs.readFileSync("/tmp/here.txt", "utf8")], ["/tmp", "/tmp/a", "x"]);
    process.chdir("..");
    equal(process.cwd(), "/");
    process.chdir("bundle");
    equal(codeOf(() => fs.readFileSync("here.txt")), "ENOENT");
    equal(codeOf(() => process.chdir("/nowhere")), "ENOENT");
    equal(codeOf(() => process.chdir("")), "ENOENT");
    equal(codeOf(() => process.chdir("/tmp/here.txt")), "ENOTDIR");
    equal(codeOf(() => process.chdir("a".repeat(5000))), "ENAMETOOLONG");
  },
  "a file of variables is loaded": () => {
    fs.writeFileSync("/tmp/.env", `A1=basic\n# A1=comment\nA2="B=C"\nA3=C=D\nA4=\nA5=''\nA6='  spaced '\nA7="x\\ny"\nA8=x\\ny\nA9=text # comment\nB1='#' # c\nexport B2 = v\n  B3 = v\nB4="l1\nl2"\nB5={"foo": "bar"}\nB6="\nB7=last`);
    process.chdir("/tmp");
    process.loadEnvFile();
    const found = ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "B1", "B2", "B3", "B4", "B5", "B6", "B7"].map((name) => process.env[name]);
    deepEqual(found, ["basic", "B=C", "C=D", "", "", "  spaced ", "x\ny", "x\\ny", "text", "#", "v", "v", "l1\nl2", '{"foo": "bar"}', '"', "last"]);
    equal(codeOf(() => process.loadEnvFile("/tmp/none")), "ENOENT");
  },
  "warnings are events": async () => {
    const seen = [];
    process.on("warning", (warning) => seen.push([warning.name, warning.message, warning.code, warning.detail]));
    process.emitWarning("one");
    process.emitWarning("two", "Custom", "C1");
    process.emitWarning("three", { type: "Custom", code: "C2", detail: "more" });
    process.emitWarning(new RangeError("four"));
    await new Promise((resolve) => process.nextTick(resolve));
    deepEqual(seen, [["Warning", "one", undefined, undefined], ["Custom", "two", "C1", undefined], ["Custom", "three", "C2", "more"], ["RangeError", "four", undefined, undefined]]);
    for (const args of [[1], [{}], [[]], [], ["", 1], ["", "", 1], ["", []], ["", "", {}]]) equal(codeOf(() => process.emitWarning(...args)), "ERR_INVALID_ARG_TYPE");
    process.removeAllListeners("warning");
  },
  "rejections are events": async () => {
    const { promise, resolve } = Promise.withResolvers();
    process.once("unhandledRejection", (reason, rejected) => resolve([reason, rejected]));
    const error = new Error("on purpose");
    const rejected = Promise.reject(error);
    const found = await promise;
    equal(found[0], error);
    equal(found[1], rejected);
    rejected.catch(() => {});
  },
  "hrtime, umask and users": () => {
    deepEqual([process.hrtime().length, typeof process.hrtime.bigint()], [2, "bigint"]);
    equal(codeOf(() => process.hrtime(1)), "ERR_INVALID_ARG_TYPE");
    equal(codeOf(() => process.hrtime([1])), "ERR_OUT_OF_RANGE");
    deepEqual([process.umask(), process.umask("755"), process.umask(0)], [18, 18, 18]);
    for (const mask of ["8", "", -1, 1.5, 2 ** 32, NaN]) equal(codeOf(() => process.umask(mask)), "ERR_INVALID_ARG_VALUE");
    for (const mask of [{}, [], null, true]) equal(codeOf(() => process.umask(mask)), "ERR_INVALID_ARG_TYPE");
    equal(process.geteuid(), 0);
    process.setegid(0);
    equal(codeOf(() => process.seteuid(1000)), "EPERM");
    for (const name of ["kill", "binding", "dlopen", "cpuUsage"]) {
      const error = throws(() => process[name]());
      deepEqual([error.code, error.message], ["ERR_METHOD_NOT_IMPLEMENTED", `The process.${name} method is not implemented`]);
    }
  },
  "streams of the process": () => {
    deepEqual([process.stdin.fd, process.stdout.fd, process.stderr.fd], [0, 1, 2]);
    deepEqual([process.stdout.writable, process.stdin.readable, process.stdin.read(), "isTTY" in process.stdout], [true, true, null, false]);
    equal(process.stdout.write("to the log\n"), true);
  },
  "os and constants": () => {
    deepEqual([os.EOL, os.platform(), os.tmpdir(), os.availableParallelism(), `${os.arch}`], ["\n", "linux", "/tmp/", 1, "x64"]);
    deepEqual([os.constants.signals.SIGTERM, os.constants.errno.ENOENT, os.constants.priority.PRIORITY_LOW], [15, 2, 19]);
    equal(codeOf(() => os.setPriority("a", 2)), "ERR_INVALID_ARG_TYPE");
    equal(codeOf(() => os.userInfo({ encoding: "bad" })), "ERR_INVALID_ARG_VALUE");
    deepEqual([constants.SIGKILL, constants.O_RDONLY, constants.EEXIST, constants.POINT_CONVERSION_HYBRID], [9, 0, 17, 6]);
    throws(() => (constants.SIGKILL = 1), TypeError);
  },
};
