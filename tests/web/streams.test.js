// https://streams.spec.whatwg.org/
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export const tests = {
  "readAtLeast() is read() with a minimum": async () => {
    const reader = new ReadableStream({ type: "bytes", pull: (controller) => controller.enqueue(new Uint8Array(2)) }).getReader({ mode: "byob" });
    equal((await reader.readAtLeast(5, new Uint8Array(8))).value.length, 6);
    await rejects(() => reader.readAtLeast(9, new Uint8Array(8)), TypeError);
    await rejects(() => reader.readAtLeast(0, new Uint8Array(8)), TypeError);
    equal(ReadableStreamBYOBReader.prototype.readAtLeast.name, "readAtLeast");
  },
  "a stream from an iterable, read by iteration": async () => {
    deepEqual(await collect(ReadableStream.from([1, 2, 3])), [1, 2, 3]);
    async function* slowly() {
      yield "a";
      await null;
      yield "b";
    }
    deepEqual(await collect(ReadableStream.from(slowly())), ["a", "b"]);
    throws(() => ReadableStream.from(5), TypeError);
  },
  "a stream asks for more as it is read": async () => {
    let pulls = 0;
    const stream = new ReadableStream({ pull: (controller) => controller.enqueue(pulls++) }, { highWaterMark: 0 });
    const reader = stream.getReader();
    equal(pulls, 0);
    equal((await reader.read()).value, 0);
    equal((await reader.read()).value, 1);
    equal(pulls, 2);
    ok(stream.locked);
    throws(() => stream.getReader(), TypeError);
    await reader.cancel();
    equal((await reader.read()).done, true);
  },
  "an error reaches the reader": async () => {
    const stream = new ReadableStream({ start: (controller) => controller.error(new RangeError("broken")) });
    await rejects(stream.getReader().read(), RangeError);
  },
  "leaving an iteration cancels the stream": async () => {
    let canceled = false;
    const stream = new ReadableStream({
      pull: (controller) => controller.enqueue(1),
      cancel: () => {
        canceled = true;
      },
    });
    for await (const chunk of stream) {
      equal(chunk, 1);
      break;
    }
    ok(canceled);
  },
  "a transform changes chunks on their way": async () => {
    const upper = new TransformStream({
      transform: (chunk, controller) => controller.enqueue(chunk.toUpperCase()),
      flush: (controller) => controller.enqueue("!"),
    });
    deepEqual(await collect(ReadableStream.from(["a", "b"]).pipeThrough(upper)), ["A", "B", "!"]);
  },
  "a writable stream waits for its sink": async () => {
    const log = [];
    const stream = new WritableStream(
      {
        write: async (chunk) => {
          await null;
          log.push(chunk);
        },
        close: () => log.push("closed"),
      },
      new CountQueuingStrategy({ highWaterMark: 2 }),
    );
    const writer = stream.getWriter();
    equal(writer.desiredSize, 2);
    writer.write(1);
    writer.write(2);
    equal(writer.desiredSize, 0);
    await writer.ready;
    await writer.close();
    deepEqual(log, [1, 2, "closed"]);
  },
  "the controller of a writable stream has a signal": async () => {
    let signal;
    const stream = new WritableStream({
      start: (controller) => {
        ({ signal } = controller);
      },
    });
    ok(signal instanceof AbortSignal);
    await stream.abort("why");
    equal(signal.reason, "why");
  },
  "both branches of a tee get all data": async () => {
    const [a, b] = ReadableStream.from([1, 2]).tee();
    deepEqual(await Promise.all([collect(a), collect(b)]), [[1, 2], [1, 2]]);
  },
  "a byte stream fills the reader's own buffer": async () => {
    const stream = new ReadableStream({
      type: "bytes",
      pull(controller) {
        const view = controller.byobRequest.view;
        new Uint8Array(view.buffer, view.byteOffset)[0] = 7;
        controller.byobRequest.respond(1);
      },
    });
    const { value } = await stream.getReader({ mode: "byob" }).read(new Uint8Array(4));
    deepEqual([...value], [7]);
  },
  "strategies": () => {
    equal(new ByteLengthQueuingStrategy({ highWaterMark: 5 }).size(new Uint8Array(3)), 3);
    equal(new CountQueuingStrategy({ highWaterMark: 5 }).highWaterMark, 5);
  },
  "a long pipe": async () => {
    let count = 0;
    let next = 0;
    const source = new ReadableStream({
      pull(controller) {
        if (next === 5000) controller.close();
        else controller.enqueue(next++);
      },
    });
    await source.pipeThrough(new TransformStream()).pipeTo(new WritableStream({ write: () => void count++ }));
    equal(count, 5000);
  },
  "a pipe does not write while its source is in enqueue": async () => {
    let source;
    const log = [];
    const readable = new ReadableStream({ start: (controller) => void (source = controller) }, { highWaterMark: 0 });
    const done = readable.pipeTo(new WritableStream({ write: (chunk) => void log.push(chunk) }));
    await null;
    source.enqueue("a");
    deepEqual(log, []);
    source.close();
    await done;
    deepEqual(log, ["a"]);
  },
  "the iterator of a stream has the prototype of the language": () => {
    const { prototype } = Object.getPrototypeOf(async function* () {});
    const iterator = new ReadableStream().values();
    equal(Object.getPrototypeOf(Object.getPrototypeOf(iterator)), Object.getPrototypeOf(prototype));
    equal(iterator[Symbol.asyncIterator](), iterator);
    deepEqual(Object.getOwnPropertyNames(Object.getPrototypeOf(iterator)).sort(), ["next", "return"]);
  },
};
