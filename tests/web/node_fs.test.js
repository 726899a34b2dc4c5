import { Buffer } from "node:buffer";
import fs, { constants } from "node:fs";
import promises from "node:fs/promises";
import process from "node:process";
import { deepEqual, equal, ok, throws } from "./assert.js";

export const tests = {
  "the modules of the worker are in /bundle": () => {
    deepEqual(fs.readdirSync("/bundle"), ["assert.js", "main.js", "node_fs.test.js"]);
    equal(process.cwd(), "/bundle");
    ok(fs.readFileSync("node_fs.test.js", "utf8").includes("the modules of the worker are in /bundle"));
    equal(fs.statSync("main.js").size, Buffer.byteLength(fs.readFileSync("/bundle/main.js")));
    ok(fs.statSync("/bundle/assert.js").isFile());
  },
  "nothing but /tmp can be changed": () => {
    for (const path of ["/bundle/new", "/new", "/dev/new"]) equal(throws(() => fs.writeFileSync(path, "x")).code, "EPERM");
    equal(throws(() => fs.writeFileSync("/bundle/main.js", "x")).code, "EPERM");
    equal(throws(() => fs.unlinkSync("/bundle/main.js")).code, "EPERM");
    equal(throws(() => fs.rmSync("/bundle", { recursive: true })).code, "EPERM");
    equal(throws(() => fs.renameSync("/tmp", "/other")).code, "EPERM");
    equal(throws(() => fs.accessSync("/bundle/main.js", constants.W_OK)).code, "EACCES");
    deepEqual(fs.readdirSync("/"), ["bundle", "tmp", "dev"]);
  },
  "devices": () => {
    const fd = fs.openSync("/dev/zero", "r+");
    const buffer = Buffer.alloc(4, 1);
    equal(fs.readSync(fd, buffer), 4);
    deepEqual([...buffer], [0, 0, 0, 0]);
    equal(fs.writeSync(fd, "thrown away"), 11);
    fs.closeSync(fd);
    equal(fs.readFileSync("/dev/null").length, 0);
    const random = fs.openSync("/dev/random");
    equal(fs.readSync(random, Buffer.alloc(100_000)), 100_000);
    equal(throws(() => fs.writeFileSync("/dev/full", "x")).code, "ENOSPC");
    equal(throws(() => fs.readFileSync("/dev/zero")).code, "EINVAL");
    ok(fs.statSync("/dev/null").isCharacterDevice());
  },
  "/tmp belongs to the call: one leaves a file": () => {
    deepEqual(fs.readdirSync("/tmp"), []);
    fs.writeFileSync("/tmp/left", "by an earlier call");
    equal(fs.openSync("/tmp/left"), 3);
  },
  "/tmp belongs to the call: another finds nothing": async () => {
    deepEqual(fs.readdirSync("/tmp"), []);
    equal(throws(() => fs.closeSync(3)).code, "EBADF");
    await promises.writeFile("/tmp/own", "stays through the call");
    await new Promise((resolve) => setTimeout(resolve, 1));
    equal(await promises.readFile("/tmp/own", "utf8"), "stays through the call");
  },
  "sizes, paths and numbers of files have bounds": () => {
    const fd = fs.openSync("/tmp/large", "w");
    equal(throws(() => fs.writeSync(fd, Buffer.from("x"), 0, 1, 2 ** 32)).code, "EFBIG");
    equal(throws(() => fs.ftruncateSync(fd, 2 ** 40)).code, "EFBIG");
    ok(throws(() => fs.openSync("/tmp/a".repeat(5000))).message.includes("File path is too long"));
    ok(throws(() => fs.openSync("/a".repeat(49))).message.includes("File path has too many segments"));
    equal(throws(() => {
      for (let count = 0; ; count++) fs.writeFileSync(`/tmp/${count}`, "");
    }).code, "ENOSPC");
    for (const name of fs.readdirSync("/tmp")) fs.unlinkSync(`/tmp/${name}`);
    fs.writeFileSync("/tmp/again", "");
    equal(throws(() => {
      for (;;) fs.openSync("/tmp/again");
    }).code, "EMFILE");
  },
  "classes of streams": async () => {
    fs.writeFileSync("/tmp/text", "some text");
    class Own extends fs.ReadStream {}
    const stream = new Own("/tmp/text");
    ok(stream instanceof fs.ReadStream && fs.createReadStream("/tmp/text") instanceof fs.FileReadStream);
    ok(fs.ReadStream("/tmp/text") instanceof fs.ReadStream);
    let found = "";
    for await (const piece of stream) found += piece;
    equal(found, "some text");
  },
  "watching is not there": () => {
    equal(throws(() => fs.watch("/tmp")).code, "ERR_METHOD_NOT_IMPLEMENTED");
  },
};
