// A pair of byte streams whose writer waits for its reader.
//
// A TransformStream queues all output of a chunk at once. Here a few bytes may become gigabytes, so the output of a write is queued
// only up to a bound, and the rest waits until some of it is read.
import { allowSecondClose } from "./differences.js";
import { PLAIN, ReadableStream, WritableStream } from "./streams.js";
import { encodeText } from "../internal/text.js";
import { bytesOf, isArrayBuffer, isBufferSource } from "../internal/webidl.js";

/** The bytes of a chunk that is written to a byte stream. */
export function toBytes(chunk) {
  if (typeof chunk === "string") return encodeText(chunk);
  if (isBufferSource(chunk)) {
    const bytes = bytesOf(chunk);
    if (isArrayBuffer(bytes.buffer)) return bytes;
  }
  throw new TypeError(
    "This TransformStream is being used as a byte stream, but received an object of non-ArrayBuffer/ArrayBufferView type on its " +
      "writable side.",
  );
}

/**
 * `pieces(chunk)` generates the output of a chunk piece by piece; `ending()` generates the rest at the end, which does not wait for
 * the reader. If either throws, both streams fail. `held`: bytes that may be queued; with 0, a write waits for the read that takes
 * it. `admit(length, isEnd)` returns an error for a piece, or the end, that makes the readable side fail without a failed write.
 */
export function createGatedPair({ pieces, ending, held = 0, admit = () => null, writableStrategy }) {
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

  const isFull = () => (held === 0 ? !isOpen : reading.desiredSize <= 0);

  /** False if the piece was not admitted. */
  const pass = async (piece) => {
    while (isFull() && stopped === null && !writing.signal.aborted) await new Promise((resolve) => (wake = resolve));
    if (stopped !== null) throw stopped.reason;
    writing.signal.throwIfAborted();
    const refused = admit(piece.length, false);
    if (refused !== null) {
      reading.error(refused);
      writing.error(refused);
      return false;
    }
    isOpen = false;
    reading.enqueue(piece);
    return true;
  };

  const readable = new ReadableStream(
    {
      type: "bytes",
      [PLAIN]: true,
      start: (controller) => void (reading = controller),
      pull: open,
      cancel(reason) {
        stopped = { reason };
        open();
        writing.error(reason);
      },
    },
    { highWaterMark: held },
  );

  const writable = new WritableStream(
    {
      start(controller) {
        writing = controller;
        controller.signal.addEventListener("abort", open);
      },
      write: (chunk) =>
        guarded(async () => {
          for (const piece of pieces(chunk)) if (!(await pass(piece))) return;
        }),
      close: () =>
        guarded(() => {
          for (const piece of ending()) reading.enqueue(piece);
          const refused = admit(0, true);
          if (refused === null) reading.close();
          else reading.error(refused);
        }),
      abort: (reason) => reading.error(reason),
    },
    writableStrategy,
  );
  allowSecondClose(writable);
  return { readable, writable };
}
