import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export const tests = {
  "a readable stream moves, and its chunks are cloned": async () => {
    const object = { a: 1 };
    const stream = ReadableStream.from([object, "b"]);
    const moved = structuredClone(stream, { transfer: [stream] });
    ok(moved instanceof ReadableStream && moved !== stream && stream.locked);
    const chunks = await collect(moved);
    deepEqual(chunks, [{ a: 1 }, "b"]);
    ok(chunks[0] !== object);
  },
  "a writable stream moves": async () => {
    const written = [];
    const stream = new WritableStream({ write: (chunk) => void written.push(chunk), close: () => void written.push("end") });
    const moved = structuredClone({ stream }, { transfer: [stream] }).stream;
    equal(stream.locked, true);
    await ReadableStream.from([1, 2]).pipeTo(moved);
    while (written.at(-1) !== "end") await new Promise((resolve) => setTimeout(resolve, 1));
    deepEqual(written, [1, 2, "end"]);
  },
  "a transform stream moves through a port": async () => {
    const { port1, port2 } = new MessageChannel();
    const stream = new TransformStream({ transform: (chunk, controller) => controller.enqueue(chunk * 2) });
    const arrived = new Promise((resolve) => (port2.onmessage = ({ data }) => resolve(data)));
    port1.postMessage(stream, [stream]);
    const moved = await arrived;
    ok(moved instanceof TransformStream);
    deepEqual(await collect(ReadableStream.from([1, 2]).pipeThrough(moved)), [2, 4]);
  },
  "errors and cancellation reach the other side": async () => {
    const failing = new ReadableStream({ pull: (controller) => controller.error(new RangeError("bad")) });
    const error = await rejects(collect(structuredClone(failing, { transfer: [failing] })));
    deepEqual([error.name, error.message], ["RangeError", "bad"]);
    let reason;
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(1), cancel: (given) => void (reason = given) });
    await structuredClone(endless, { transfer: [endless] }).cancel("enough");
    while (reason === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    equal(reason, "enough");
  },
  "a chunk that cannot be cloned breaks both ends": async () => {
    const stream = ReadableStream.from([() => {}]);
    equal((await rejects(collect(structuredClone(stream, { transfer: [stream] })))).name, "DataCloneError");
  },
  "a stream is transferred as a whole and not copied": () => {
    const stream = new ReadableStream();
    equal(throws(() => structuredClone(stream)).name, "DataCloneError");
    stream.getReader();
    equal(throws(() => structuredClone(stream, { transfer: [stream] })).name, "DataCloneError");
    const other = new WritableStream();
    throws(() => structuredClone(() => {}, { transfer: [other] }));
    equal(other.locked, false);
  },
  "a transform stream moves with both sides": () => {
    for (const side of ["readable", "writable"]) {
      const stream = new TransformStream();
      equal(throws(() => structuredClone(stream, { transfer: [stream, stream[side]] })).name, "DataCloneError");
      const other = new TransformStream();
      equal(throws(() => structuredClone(other, { transfer: [other[side], other] })).name, "DataCloneError");
    }
  },
};
