// A stream to another worker, in the arguments or the result of a method call: one side writes, the other reads. Python holds
// a bounded part of it in between.
import { lazy } from "#web/internal/lazy.js";
import { defineOp } from "#web/internal/ops.js";

const open = defineOp("pipe.open");
const write = defineOp("pipe.write");
const read = defineOp("pipe.read");
const cancel = defineOp("pipe.cancel");

const PIECE = 128 * 1024;

/** Begins to send a source: { pipe, sent }, the name to read it by, and the promise of its end. */
export async function sendThroughPipe(source) {
  const { pipe } = (await open({})).meta;
  return { pipe, sent: send(pipe, source) };
}

async function send(pipe, source) {
  try {
    for (;;) {
      const bytes = await source.read();
      if (bytes === null) break;
      for (let at = 0; at < bytes.length; at += PIECE) {
        const { more } = (await write({ pipe }, bytes.subarray(at, at + PIECE))).meta;
        if (!more) return source.cancel(new Error("The worker that was sent the stream does not read it any more."));
      }
    }
    await write({ pipe, ended: true });
  } catch (error) {
    const { describeThrown } = lazy("worker/thrown.js");
    await write({ pipe, thrown: describeThrown(error) }).catch(() => {}); // the call is over: the reader gets an error anyway
  }
}

/** A stream from another worker, in the form in which the platform reads bodies: read() until null. */
export class PipedBody {
  #pipe;
  #hasEnded = false;
  #next = null; // the pending read: one is always requested ahead

  constructor(pipe) {
    this.#pipe = pipe;
  }

  async read() {
    if (this.#hasEnded) return null;
    this.#next ??= this.#ask();
    const { meta, body } = await this.#next;
    this.#next = null;
    this.#hasEnded = meta.ended;
    if (meta.thrown !== undefined) throw lazy("worker/thrown.js").makeThrown(meta.thrown);
    if (!meta.ended) this.#next = this.#ask();
    return body.length > 0 ? body : null;
  }

  #ask() {
    const asked = read({ pipe: this.#pipe });
    asked.catch(() => {}); // the reader gets the error
    return asked;
  }

  cancel() {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    cancel({ pipe: this.#pipe }).catch(() => {});
  }
}
