// A pair of streams whose writer moves at the pace of its reader.
//
// A TransformStream queues all output of a chunk at once. Here a few bytes may become gigabytes, so each piece waits until it is
// read.
import { ReadableStream, WritableStream } from "./streams.js";

/**
 * `pieces(chunk)` generates the output of a chunk piece by piece; `ending()` generates the rest at the end, which does not wait for
 * the reader. If either throws, both streams fail. `type`: "bytes" for a readable byte stream.
 */
export function createGatedPair({ pieces, ending, type = undefined, readableStrategy, writableStrategy }) {
  let reading; // the controllers
  let writing;
  let isOpen = false; // a read is pending
  let wake = null; // resumes the write that waits for a read
  let stopped = null; // { reason } once the readable side is canceled

  const open = () => {
    isOpen = true;
    wake?.();
    wake = null;
  };

  const guarded = async (body) => {
    try {
      await body();
    } catch (error) {
      if (stopped === null) reading.error(error);
      throw error;
    }
  };

  const pass = async (piece) => {
    if (!isOpen) await new Promise((resolve) => (wake = resolve));
    if (stopped !== null) throw stopped.reason;
    writing.signal.throwIfAborted();
    isOpen = false;
    reading.enqueue(piece);
  };

  const readable = new ReadableStream(
    {
      type,
      start: (controller) => void (reading = controller),
      pull: open,
      cancel(reason) {
        stopped = { reason };
        open();
        writing.error(reason);
      },
    },
    readableStrategy ?? { highWaterMark: 0 },
  );

  const writable = new WritableStream(
    {
      start(controller) {
        writing = controller;
        controller.signal.addEventListener("abort", open);
      },
      write: (chunk) =>
        guarded(async () => {
          for (const piece of pieces(chunk)) await pass(piece);
        }),
      close: () =>
        guarded(() => {
          for (const piece of ending()) reading.enqueue(piece);
          reading.close();
          reading.byobRequest?.respond(0);
        }),
      abort: (reason) => reading.error(reason),
    },
    writableStrategy,
  );
  return { readable, writable };
}
