// Bodies on their way between the engine and a worker: chunks in, chunks out, each with back-pressure.
import { native } from "../internal/native.js";
import { encodeText } from "../internal/text.js";

/** A request body that arrives in pieces. The engine lets Python send more as pieces are read. */
export class IncomingBody {
  #call;
  #chunks = [];
  #ended = false;
  #error = undefined;
  #reader = null; // { resolve, reject } of the read that waits

  constructor(call) {
    this.#call = call;
  }

  /** The next piece, or null at the end. One read at a time. */
  read() {
    if (this.#chunks.length > 0) return Promise.resolve(this.#take());
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(null);
    native.awaitBody(this.#call);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** The worker does not want the rest. */
  cancel() {
    if (this.#ended) return;
    this.#ended = true;
    this.#chunks.length = 0;
    native.stopBody(this.#call);
  }

  /** From the engine: a piece, or null at the end. */
  push(chunk) {
    if (this.#ended) return;
    if (chunk === null) this.#ended = true;
    else this.#chunks.push(chunk);
    const reader = this.#reader;
    if (reader === null) return;
    this.#reader = null;
    reader.resolve(chunk === null ? null : this.#take());
  }

  /** From the engine: the client is gone. */
  fail(error) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#reader?.reject(error);
    this.#reader = null;
  }

  #take() {
    const chunk = this.#chunks.shift();
    native.tookBody(this.#call, chunk.byteLength);
    return chunk;
  }
}

/** A response body that leaves in pieces, as fast as the client takes them. */
export class OutgoingBody {
  #call;
  #reader;
  #waiting = null; // resolves when there is credit again
  #stopped = false;

  constructor(call, stream) {
    this.#call = call;
    this.#reader = stream.getReader();
  }

  /** Sends everything; resolves at the end, rejects with what broke the stream. */
  async send() {
    for (;;) {
      const { value, done } = await this.#reader.read();
      if (this.#stopped) return;
      if (done) break;
      await this.#write(toBytes(value));
      if (this.#stopped) return;
    }
    native.endBody(this.#call);
  }

  async #write(chunk) {
    let sent = 0;
    while (sent < chunk.byteLength) {
      sent += native.sendBody(this.#call, chunk, sent);
      if (sent === chunk.byteLength || this.#stopped) return;
      native.awaitCredit(this.#call);
      await new Promise((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  /** From the engine: the client took some. */
  resume() {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.();
  }

  /** From the engine: the client is gone. */
  stop(reason) {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#reader.cancel(reason).catch(() => {});
    this.resume();
  }
}

function toBytes(chunk) {
  if (chunk instanceof Uint8Array) return chunk;
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  if (typeof chunk === "string") return encodeText(chunk);
  throw new TypeError("The response body's stream gave a chunk that is neither bytes nor a string.");
}

/** Sends bytes that are all here but too many for one frame. */
export function streamOf(bytes) {
  let position = 0;
  return {
    getReader: () => ({
      read: () => {
        const value = bytes.subarray(position, position + 65536);
        position += value.byteLength;
        return Promise.resolve({ value, done: value.byteLength === 0 });
      },
      cancel: () => Promise.resolve(),
    }),
  };
}
