// A pair of streams whose writing end moves at the pace of the reading end.
//
// In a TransformStream all that one chunk becomes is queued at once. Where a few bytes may become gigabytes, each piece waits here
// until somebody asks for it.
import { ReadableStream, WritableStream } from "./streams.js";

/**
 * `pieces(chunk)` gives what a chunk becomes, one piece after the other, and `ending()` what is left at the end, which does not wait.
 * Both may throw, which breaks both streams. `type`: "bytes" for a readable byte stream.
 */
export function createGatedPair({ pieces, ending, type = undefined, readableStrategy, writableStrategy }) {
  let reading; // the controllers
  let writing;
  let isOpen = false; // somebody waits for a piece
  let wake = null; // of the write that waits for that
  let stopped = null; // { reason } once the reading end has been canceled

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
