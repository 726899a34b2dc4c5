// A stream to another worker, in the arguments or the result of a method call: one side writes, the other reads. Python holds
// a bounded part of it in between. The side that sends the stream chooses the name of the pipe, at random: who knows it may use
// the other end.
import { lazy } from "#web/internal/lazy.js";
import { native } from "#web/internal/native.js";
import { defineOp } from "#web/internal/ops.js";
import { bytesOf, isBufferSource } from "#web/internal/webidl.js";

const open = defineOp("pipe.open");
const write = defineOp("pipe.write");
const read = defineOp("pipe.read");
const cancel = defineOp("pipe.cancel");

const PIECE = 128 * 1024;

function makeName() {
  return native.randomUUID().replaceAll("-", "");
}

function isGone() {
  return new Error("The worker that was sent the stream does not read it any more.");
}

/** Begins to send a source: { pipe, sent }, the name to read it by, and the promise of its end. */
export function sendThroughPipe(source) {
  const pipe = makeName();
  return { pipe, sent: send(pipe, open({ pipe }), source) };
}

async function send(pipe, opened, source) {
  try {
    await opened;
  } catch (error) {
    source.cancel(error);
    return;
  }
  try {
    for (;;) {
      const bytes = await source.read();
      if (bytes === null) break;
      if (!(await writePieces(pipe, bytes))) return source.cancel(isGone());
    }
    await write({ pipe, ended: true });
  } catch (error) {
    await breakPipe(pipe, error);
  }
}

async function writePieces(pipe, bytes) {
  for (let at = 0; at < bytes.length; at += PIECE) {
    const { more } = (await write({ pipe }, bytes.subarray(at, at + PIECE))).meta;
    if (!more) return false;
  }
  return true;
}

function breakPipe(pipe, error) {
  const { describeThrown } = lazy("worker/thrown.js");
  return write({ pipe, thrown: describeThrown(error) }).catch(() => {}); // the call is over: the reader gets an error anyway
}

/** Begins to write what the other worker writes into a pipe to `writer`, of a stream: { pipe, sent } as above. */
export function receiveThroughPipe(writer) {
  const pipe = makeName();
  writer.closed.catch(() => {});
  return { pipe, sent: receive(new PipedBody(pipe), open({ pipe, reads: true }), writer) };
}

async function receive(body, opened, writer) {
  try {
    await opened;
    for (;;) {
      const bytes = await body.read();
      if (bytes === null) break;
      await writer.ready;
      await writer.write(bytes);
    }
    await writer.close();
  } catch (error) {
    body.cancel(); // if the stream here has failed, the other worker learns that no more is needed
    await writer.abort(error).catch(() => {});
  }
}

/** The underlying sink of a WritableStream whose chunks go to a stream of another worker. */
export function pipeSink(pipe) {
  // The first write makes this call the writer; before, the end of the method call would close the pipe.
  const claimed = write({ pipe });
  claimed.catch(() => {});
  return {
    async write(chunk) {
      await claimed;
      if (!isBufferSource(chunk)) throw new TypeError("A stream to another worker takes bytes: an ArrayBuffer or a view of one.");
      if (!(await writePieces(pipe, bytesOf(chunk).slice()))) throw isGone();
    },
    async close() {
      await claimed;
      await write({ pipe, ended: true });
    },
    abort: (reason) => breakPipe(pipe, reason),
  };
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
