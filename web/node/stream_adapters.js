// https://nodejs.org/api/stream.html#streamreadablefromwebreadablestream-options and the other conversions between Node and web
// streams.
import { ReadableStream, WritableStream } from "../streams/streams.js";
import { invalidArgument } from "./errors.js";

function readableFromWeb(Readable, stream, options) {
  if (!(stream instanceof ReadableStream)) throw invalidArgument("readableStream", "an instance of ReadableStream", stream);
  const reader = stream.getReader();
  return new Readable({
    ...options,
    read() {
      reader.read().then(({ value, done }) => this.push(done ? null : value)).catch((error) => this.destroy(error));
    },
    destroy(error, callback) {
      reader.cancel(error ?? undefined).then(() => callback(error), () => callback(error));
    },
  });
}

function readableToWeb(stream, options = {}) {
  const { highWaterMark } = options.strategy ?? { highWaterMark: stream.readableObjectMode ? stream.readableHighWaterMark : 1 };
  let isOver = false;
  return new ReadableStream(
    {
      start(controller) {
        stream.pause();
        stream.on("data", (chunk) => {
          // A copy: a Buffer may share its memory, and the reader of a chunk may detach it.
          controller.enqueue(chunk instanceof Uint8Array ? new Uint8Array(chunk) : chunk);
          if (controller.desiredSize <= 0) stream.pause();
        });
        const end = (error) => {
          if (isOver) return;
          isOver = true;
          if (error) controller.error(error);
          else controller.close();
        };
        stream.once("end", () => end(null));
        stream.once("error", end);
        stream.once("close", () => end(stream.readableEnded ? null : new Error("The stream was closed before its end.")));
      },
      pull: () => void stream.resume(),
      cancel(reason) {
        isOver = true;
        stream.destroy(reason instanceof Error ? reason : undefined);
      },
    },
    { highWaterMark },
  );
}

function writableFromWeb(Writable, stream, options) {
  if (!(stream instanceof WritableStream)) throw invalidArgument("writableStream", "an instance of WritableStream", stream);
  const writer = stream.getWriter();
  return new Writable({
    ...options,
    write(chunk, encoding, callback) {
      writer.ready.then(() => writer.write(chunk)).then(() => callback(), callback);
    },
    final(callback) {
      writer.close().then(() => callback(), callback);
    },
    destroy(error, callback) {
      if (error === null) callback(null);
      else writer.abort(error).then(() => callback(error), () => callback(error));
    },
  });
}

function writableToWeb(stream) {
  return new WritableStream({
    start(controller) {
      stream.once("error", (error) => controller.error(error));
    },
    write: (chunk) =>
      new Promise((resolve, reject) => {
        stream.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    close: () =>
      new Promise((resolve, reject) => {
        stream.end((error) => (error ? reject(error) : resolve()));
      }),
    abort: (reason) => void stream.destroy(reason instanceof Error ? reason : undefined),
  });
}

/** Adds the conversions from and to web streams to the classes of node:stream. */
export function addWebAdapters({ Duplex, Readable, Writable }) {
  Readable.fromWeb = (stream, options = undefined) => readableFromWeb(Readable, stream, options);
  Readable.toWeb = (stream, options = undefined) => readableToWeb(stream, options);
  Writable.fromWeb = (stream, options = undefined) => writableFromWeb(Writable, stream, options);
  Writable.toWeb = (stream) => writableToWeb(stream);
  Duplex.fromWeb = ({ readable, writable }, options = undefined) =>
    Duplex.from({ readable: Readable.fromWeb(readable, options), writable: Writable.fromWeb(writable, options) });
  Duplex.toWeb = (stream) => ({ readable: readableToWeb(stream), writable: writableToWeb(stream) });
}
