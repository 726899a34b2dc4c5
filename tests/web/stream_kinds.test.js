// Streams of other standards, and what a worker can see of streams.
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export const tests = {
  "text becomes bytes, surrogates split between chunks too": async () => {
    const out = await collect(ReadableStream.from(["a", "", "\ud83d", "\ude00b", "\ud800", 5, "\ud83d"]).pipeThrough(new TextEncoderStream()));
    ok(out.every((chunk) => chunk instanceof Uint8Array));
    equal(await new Blob(out).text(), "a😀b\ufffd5\ufffd");
    equal(new TextEncoderStream().encoding, "utf-8");
  },
  "bytes become text": async () => {
    const data = bytes("\ufeffaé😀");
    const single = Array.from(data, (byte) => new Uint8Array([byte]));
    equal((await collect(ReadableStream.from(single).pipeThrough(new TextDecoderStream()))).join(""), "aé😀");
    const kept = ReadableStream.from([data.buffer]).pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true }));
    deepEqual(await collect(kept), ["\ufeffaé😀"]);
    deepEqual(await collect(ReadableStream.from([data.slice(0, -1)]).pipeThrough(new TextDecoderStream())), ["aé", "\ufffd"]);
    const stream = new TextDecoderStream("UTF-16", { fatal: true });
    equal(stream.encoding, "utf-16le");
    equal(stream.fatal, true);
    equal(stream.ignoreBOM, false);
    throws(() => new TextDecoderStream("nonsense"), RangeError);
    await rejects(collect(ReadableStream.from([new Uint8Array([0xff])]).pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))), TypeError);
    await rejects(collect(ReadableStream.from([data.slice(0, -1)]).pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))), TypeError);
    for (const wrong of [undefined, null, 3, "text", {}]) {
      await rejects(collect(ReadableStream.from([wrong]).pipeThrough(new TextDecoderStream())), TypeError);
    }
  },
  "an identity stream passes bytes on": async () => {
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    const data = bytes("hello");
    let done = false;
    const write = writer.write(data).then(() => (done = true));
    await null;
    equal(done, false);
    const reader = readable.getReader({ mode: "byob" });
    deepEqual([...(await reader.read(new Uint8Array(2))).value], [...bytes("he")]);
    await write;
    equal(data.length, 5);
    deepEqual([...(await reader.read(new Uint8Array(9))).value], [...bytes("llo")]);
    const end = reader.read(new Uint8Array(9));
    await writer.close();
    equal((await end).done, true);
    const other = new IdentityTransformStream();
    other.readable.cancel().catch(() => {});
    for (const wrong of [null, 5, {}, [1]]) {
      const error = await rejects(new IdentityTransformStream().writable.getWriter().write(wrong), TypeError);
      ok(error.message.includes("non-ArrayBuffer/ArrayBufferView"));
    }
    const text = new IdentityTransformStream();
    const textWriter = text.writable.getWriter();
    textWriter.write("héllo");
    textWriter.close();
    equal(await new Response(text.readable).text(), "héllo");
  },
  "an identity stream carries a response": async () => {
    const { readable, writable } = new IdentityTransformStream();
    const response = new Response(readable);
    const writer = writable.getWriter();
    writer.write(bytes("a"));
    writer.write(bytes("b").buffer);
    writer.write(new Uint8Array(0));
    writer.close();
    equal(await response.text(), "ab");
  },
  "a stream of fixed length accepts neither more nor less": async () => {
    const exact = new FixedLengthStream(3);
    ok(exact instanceof IdentityTransformStream);
    const text = new Response(exact.readable).text();
    const writer = exact.writable.getWriter();
    writer.write(bytes("abc"));
    await writer.close();
    equal(await text, "abc");

    const less = new FixedLengthStream(3n);
    const lessRead = rejects(new Response(less.readable).text(), TypeError);
    const lessWriter = less.writable.getWriter();
    lessWriter.write(bytes("a"));
    await lessWriter.close();
    equal((await lessRead).message, "FixedLengthStream did not see all expected bytes before close().");

    const more = new FixedLengthStream(1);
    const moreRead = rejects(new Response(more.readable).text(), TypeError);
    const moreWriter = more.writable.getWriter();
    await moreWriter.write("ab");
    equal((await moreRead).message, "Attempt to write too many bytes through a FixedLengthStream.");
    await rejects(moreWriter.close(), TypeError);
    for (const wrong of [-1, NaN, "x", 2 ** 60, 1.5]) throws(() => new FixedLengthStream(wrong), TypeError);
    throws(() => new FixedLengthStream(), TypeError);
  },
  "streams show no internals": async () => {
    let controller;
    const stream = new ReadableStream({ type: "bytes", start: (given) => void (controller = given) });
    const transform = new TransformStream();
    const writable = new WritableStream();
    const iterator = ReadableStream.from([1]).values();
    for (const object of [
      stream, controller, stream.getReader(), transform, writable, writable.getWriter(), iterator,
      new CountQueuingStrategy({ highWaterMark: 1 }), new TextDecoderStream(), new CompressionStream("gzip"), new Blob(["x"]),
      new FormData(), new Request("http://a/"), new Response("x"), new IdentityTransformStream(),
    ]) {
      deepEqual(Reflect.ownKeys(object), [], String(object));
    }
    equal("abortReason" in WritableStreamDefaultController.prototype, false);
    for (const key of Object.getOwnPropertyNames(ReadableStream.prototype)) ok(!key.startsWith("_"), key);
  },
  "methods of streams refuse other objects": async () => {
    throws(() => Object.getOwnPropertyDescriptor(ReadableStream.prototype, "locked").get.call({}), TypeError);
    await rejects(ReadableStream.prototype.cancel.call(Object.create(ReadableStream.prototype)), TypeError);
    throws(() => new Response(Object.create(ReadableStream.prototype)).body.getReader.call({}), TypeError);
  },
  "a proxy of a stream is refused, and its handler sees no internal key": async () => {
    const keys = new Set();
    const handler = new Proxy({}, {
      get: (_, trap) => (target, ...args) => {
        for (const arg of args) if (typeof arg === "symbol") keys.add(arg.description);
        return Reflect[trap](target, ...args);
      },
    });
    const spied = (object) => new Proxy(object, handler);
    const { readable, writable } = new TransformStream();
    const stream = spied(readable);
    throws(() => ReadableStream.prototype.getReader.call(stream), TypeError);
    throws(() => ReadableStream.prototype.tee.call(stream), TypeError);
    throws(() => WritableStream.prototype.getWriter.call(spied(writable)), TypeError);
    throws(() => new ReadableStreamDefaultReader(stream), TypeError);
    throws(() => new ReadableStream().pipeThrough({ readable: stream, writable: spied(writable) }), TypeError);
    await rejects(ReadableStreamDefaultReader.prototype.read.call(spied(readable.getReader())), TypeError);
    throws(() => new Response(stream), TypeError);
    await rejects(WritableStream.prototype.abort.call(spied(new WritableStream())), TypeError);
    throws(() => Object.getOwnPropertyDescriptor(TransformStream.prototype, "readable").get.call(spied(new TransformStream())), TypeError);
    deepEqual([...keys].filter((key) => !key.startsWith("Symbol.")), []);
    class Sub extends ReadableStream {}
    equal(await new Response(new Sub({ start: (controller) => controller.close() })).text(), "");
    deepEqual(Reflect.ownKeys(Object.freeze(new Sub())), []);
  },
  "a byte stream can be split in two": async () => {
    const [a, b] = new Blob(["some bytes"]).stream().tee();
    const reader = b.getReader({ mode: "byob" });
    equal((await reader.read(new Uint8Array(4))).value.length, 4);
    reader.releaseLock();
    equal(await new Response(a).text(), "some bytes");
    throws(() => new Response(b), TypeError);
  },
  "a read may request a minimum": async () => {
    const stream = new ReadableStream({
      type: "bytes",
      pull: (controller) => controller.enqueue(new Uint8Array(2)),
    });
    const reader = stream.getReader({ mode: "byob" });
    equal((await reader.read(new Uint8Array(8), { min: 5 })).value.length, 6);
  },
};
