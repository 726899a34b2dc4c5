import Stream, { Duplex, duplexPair, finished, PassThrough, Readable, Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as consumers from "node:stream/consumers";
import zlib from "node:zlib";
import { promisify } from "node:util";
import { Buffer } from "node:buffer";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

export const tests = {
  "streams of Node flow, transform and end": async () => {
    const upper = new Transform({ transform: (chunk, encoding, callback) => callback(null, chunk.toString().toUpperCase()) });
    const written = [];
    const sink = new Writable({ write: (chunk, encoding, callback) => (written.push(`${chunk}`), callback()) });
    await pipeline(Readable.from(["a", "b"]), upper, sink);
    deepEqual(written, ["A", "B"]);
    ok(upper instanceof Stream && upper instanceof Duplex);
    deepEqual(await Readable.from([1, 2, 3]).map((number) => number * 2).toArray(), [2, 4, 6]);
  },
  "a broken stream breaks the pipeline": async () => {
    const failing = new Readable({ read() { this.destroy(new Error("bad")); } });
    equal((await rejects(pipeline(failing, new PassThrough()))).message, "bad");
    const closed = new Promise((resolve) => finished(new PassThrough().destroy(new Error("x")), resolve));
    equal((await closed).message, "x");
  },
  "both ends of a pair": async () => {
    const [left, right] = duplexPair();
    left.end("over");
    equal(await consumers.text(right), "over");
  },
  "streams of Node and of the web convert into each other": async () => {
    const web = Readable.toWeb(Readable.from([Buffer.from("a"), Buffer.from("b")]));
    equal(await new Response(web).text(), "ab");
    const node = Readable.fromWeb(new Response("from the web").body);
    equal(await consumers.text(node), "from the web");
    const { readable, writable } = new TransformStream();
    const reading = new Response(readable.pipeThrough(new TextEncoderStream())).text();
    const target = Writable.fromWeb(writable, { decodeStrings: false });
    target.write("x");
    target.end("y");
    equal(await reading, "xy");
    const collected = [];
    const sink = Writable.toWeb(new Writable({ write: (chunk, encoding, callback) => (collected.push(`${chunk}`), callback()) }));
    await ReadableStream.from(["1", "2"]).pipeTo(sink);
    deepEqual(collected, ["1", "2"]);
    const endless = new Readable({ read() { this.push("z"); } });
    await Readable.toWeb(endless).cancel();
    equal(endless.destroyed, true);
  },
  "consumers": async () => {
    const make = () => Readable.from([Buffer.from('{"a"'), Buffer.from(":1}")]);
    deepEqual(await consumers.json(make()), { a: 1 });
    equal((await consumers.buffer(make())).toString(), '{"a":1}');
    equal((await consumers.arrayBuffer(make())).byteLength, 7);
    equal((await consumers.blob(new Response("abc").body)).size, 3);
  },
  "zlib at once, with callbacks and as streams": async () => {
    const text = "compress me ".repeat(1000);
    for (const [pack, unpack] of [["gzip", "gunzip"], ["deflate", "inflate"], ["deflateRaw", "inflateRaw"], ["gzip", "unzip"], ["deflate", "unzip"]]) {
      const packed = zlib[`${pack}Sync`](text);
      ok(packed.length < 200);
      equal(zlib[`${unpack}Sync`](packed).toString(), text);
      equal((await promisify(zlib[unpack])(await promisify(zlib[pack])(Buffer.from(text)))).toString(), text);
    }
    const through = Readable.from([text]).pipe(zlib.createGzip()).pipe(zlib.createGunzip());
    equal(await consumers.text(through), text);
    const web = new Response(zlib.gzipSync(text)).body.pipeThrough(new DecompressionStream("gzip"));
    equal(await new Response(web).text(), text);
    equal(zlib.crc32("hello"), 907060870);
    equal(throws(() => zlib.gunzipSync(Buffer.from("no gzip"))).code, "Z_DATA_ERROR");
    equal(throws(() => zlib.gunzipSync(zlib.gzipSync(text).subarray(0, 30))).code, "Z_BUF_ERROR");
    equal(throws(() => zlib.gunzipSync(zlib.gzipSync(text), { maxOutputLength: 100 })).code, "ERR_BUFFER_TOO_LARGE");
  },
};
