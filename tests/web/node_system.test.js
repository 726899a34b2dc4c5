import fs from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import module, { createRequire } from "node:module";
import net from "node:net";
import tty from "node:tty";
import util, { MIMEType, parseArgs } from "node:util";
import buffer from "node:buffer";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

export const tests = {
  "files live in memory, in /tmp": async () => {
    fs.mkdirSync("/tmp/a/b", { recursive: true });
    await writeFile("/tmp/a/b/f.txt", "one");
    fs.appendFileSync("/tmp/a/b/f.txt", " two");
    equal(await readFile("/tmp/a/b/../b/f.txt", "utf8"), "one two");
    equal(fs.readFileSync("/tmp/a/b/f.txt").length, 7);
    deepEqual(fs.readdirSync("/tmp/a"), ["b"]);
    deepEqual([fs.statSync("/tmp/a").isDirectory(), fs.statSync("/tmp/a/b/f.txt").size], [true, 7]);
    fs.renameSync("/tmp/a/b/f.txt", "/tmp/g.txt");
    deepEqual([fs.existsSync("/tmp/a/b/f.txt"), fs.existsSync("/tmp/g.txt")], [false, true]);
    equal(throws(() => fs.rmdirSync("/tmp/a")).code, "ENOTEMPTY");
    fs.rmSync("/tmp/a", { recursive: true });
    await new Promise((resolve) => fs.unlink("/tmp/g.txt", resolve));
    deepEqual(fs.readdirSync("/tmp"), []);
  },
  "the files of the host are not visible": async () => {
    for (const path of ["/etc/passwd", "/proc/self/environ", "/tmp/../etc/shadow", "file.txt", new URL("file:///etc/hostname")]) {
      const error = throws(() => fs.readFileSync(path));
      deepEqual([error.code, error.syscall], ["ENOENT", "open"]);
    }
    equal(throws(() => fs.writeFileSync("/etc/x", "y")).code, "ENOENT");
    equal((await rejects(readFile("/nowhere"))).code, "ENOENT");
    throws(() => fs.readFileSync("/tmp/\0"), TypeError);
    throws(() => fs.openSync("/etc/passwd"));
  },
  "addresses": () => {
    deepEqual(["127.0.0.1", "256.1.1.1", "1.2.3", "::1", "1::2::3", "fe80::1%eth0", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "x"].map(net.isIP), [4, 0, 0, 6, 0, 6, 6, 6, 0]);
  },
  "small modules": () => {
    equal(tty.isatty(1), false);
    ok(module.builtinModules.includes("stream") && module.isBuiltin("node:fs") && !module.isBuiltin("x"));
    equal(createRequire("file:///x")("path").basename("/a/b"), "b");
    throws(() => createRequire("/")("left-pad"));
    equal(createRequire(new URL("file:///x"))("node:path").sep, "/");
    for (const wrong of ["x", "http://a/", 1, new URL("http://a/")]) equal(throws(() => createRequire(wrong)).code, "ERR_INVALID_ARG_VALUE");
    ok(module.isBuiltin("node:test") && !module.isBuiltin("test") && module.builtinModules.includes("node:sqlite"));
    deepEqual([http.STATUS_CODES[404], typeof https.get], ["Not Found", "function"]);
    deepEqual([buffer.Blob, buffer.File], [Blob, File]);
  },
  "the default of node:module is a class, whose prototype bundles of Next patch": () => {
    equal(typeof module, "function");
    equal(module.Module, module);
    module.prototype.require = (name) => name;
    equal(throws(() => module._resolveFilename("x")).code, "ERR_METHOD_NOT_IMPLEMENTED");
  },
  "a class of IncomingMessage may pass a socket that is no stream": async () => {
    class Message extends http.IncomingMessage {
      constructor(body) {
        super({ readable: false, remoteAddress: "127.0.0.1", end: Function.prototype, destroy: Function.prototype });
        this._read = () => {
          this.push(body);
          this.push(null);
        };
      }
    }
    const pieces = [];
    for await (const piece of new Message(buffer.Buffer.from("body"))) pieces.push(`${piece}`);
    deepEqual(pieces, ["body"]);
    equal(new Message("").socket.remoteAddress, "127.0.0.1");
  },
  "util.parseArgs": () => {
    const options = { foo: { type: "boolean", short: "f" }, bar: { type: "string", short: "b", multiple: true }, level: { type: "string", default: "low" } };
    const { values, positionals } = parseArgs({ args: ["-f", "--bar", "x", "-by", "rest", "--", "--foo"], options, allowPositionals: true });
    deepEqual({ ...values }, { foo: true, bar: ["x", "y"], level: "low" });
    deepEqual(positionals, ["rest", "--foo"]);
    deepEqual({ ...parseArgs({ args: ["--no-foo"], options, allowNegative: true }).values }, { foo: false, level: "low" });
    equal(throws(() => parseArgs({ args: ["--huh"], options })).code, "ERR_PARSE_ARGS_UNKNOWN_OPTION");
    equal(throws(() => parseArgs({ args: ["x"], options })).code, "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL");
    equal(throws(() => parseArgs({ args: ["--bar"], options })).code, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE");
    equal(throws(() => parseArgs({ args: ["--foo=1"], options })).code, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE");
    deepEqual({ ...parseArgs({ args: ["--any=1", "-x"], strict: false }).values }, { any: "1", x: true });
  },
  "util.MIMEType": () => {
    const type = new MIMEType('Text/HTML; charset="utf-8"; q=a b');
    deepEqual([type.essence, type.params.get("charset"), `${type}`], ["text/html", "utf-8", 'text/html;charset=utf-8;q="a b"']);
    type.subtype = "plain";
    type.params.set("x", "1");
    type.params.delete("q");
    equal(JSON.stringify({ type }), '{"type":"text/plain;charset=utf-8;x=1"}');
    equal(throws(() => new util.MIMEType("nothing")).code, "ERR_INVALID_MIME_SYNTAX");
  },
};
