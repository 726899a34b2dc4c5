// Bodies on their way between the engine and a worker: chunks in, chunks out, each with back-pressure.
import { native } from "../internal/native.js";
import { readNext } from "../streams/streams.js";

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

  /** All of it goes out as the response body, past JavaScript. Resolves at its end. */
  pipe() {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    const chunks = this.#chunks;
    this.#chunks = [];
    if (native.pipeBody(this.#call, concat(chunks), this.#ended)) {
      this.#ended = true;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      this.#ended = false; // the end is when the last byte has gone
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
  #source; // { read(): Promise<Uint8Array | null>, cancel(reason) }, and pipe() if it can pass by the engine
  #waiting = null; // resolves when there is credit again
  #stopped = false;

  constructor(call, source) {
    this.#call = call;
    this.#source = source;
  }

  /** Sends everything; resolves at the end, rejects with what broke the stream. */
  async send() {
    if (this.#source instanceof IncomingBody) return this.#source.pipe();
    if (this.#source.isUntouched) {
      await this.#source.pipe();
      if (!this.#stopped) native.endBody(this.#call);
      return;
    }
    for (;;) {
      const chunk = await this.#source.read();
      if (this.#stopped) return;
      if (chunk === null) break;
      const sent = native.sendBody(this.#call, chunk, 0);
      if (sent < chunk.byteLength) await this.#write(chunk, sent);
      if (this.#stopped) return;
    }
    native.endBody(this.#call);
  }

  // The rest of a chunk, as there is credit for it.
  async #write(chunk, start) {
    let sent = start;
    while (sent < chunk.byteLength && !this.#stopped) {
      native.awaitCredit(this.#call);
      await new Promise((resolve) => {
        this.#waiting = resolve;
      });
      sent += native.sendBody(this.#call, chunk, sent);
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
    this.#source.cancel(reason);
    this.resume();
  }
}

function concat(chunks) {
  if (chunks.length === 1) return chunks[0];
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
}

/** Bytes that are all here but too many for one frame, as a source. */
export function sourceOfBytes(bytes) {
  let position = 0;
  return {
    read: () => {
      const chunk = bytes.subarray(position, position + 65536);
      position += chunk.byteLength;
      return Promise.resolve(chunk.byteLength === 0 ? null : chunk);
    },
    cancel: () => {},
  };
}

/** A worker's stream, as a source. */
export function sourceOfStream(stream) {
  const reader = stream.getReader();
  return {
    read: () => readNext(reader),
    cancel: (reason) => void reader.cancel(reason).catch(() => {}),
  };
}
