// Body chunks between the engine and a worker, with backpressure in both directions.
import { native } from "../internal/native.js";
import { readNext } from "../streams/streams.js";

/** A request body that arrives in chunks. As the worker reads chunks, the engine lets Python send more. */
export class IncomingBody {
  #call;
  #chunks = [];
  #ended = false;
  #error = undefined;
  #reader = null; // { resolve, reject } of the pending read
  #head;
  #taken = 0; // bytes that were read

  /** `head` is that of the request. */
  constructor(call, head = "") {
    this.#call = call;
    this.#head = head;
  }

  /** The Content-Length of the request, which the front enforces; undefined if it has none. */
  get declaredLength() {
    const found = /\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n/i.exec(this.#head);
    return found === null ? undefined : Number(found[1]);
  }

  /** The next chunk, or null at the end. One read at a time. */
  read() {
    if (this.#chunks.length > 0) return Promise.resolve(this.#take());
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(null);
    native.awaitBody(this.#call);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** Sends the whole request body as the response body inside the engine, without JavaScript. Resolves at its end. */
  pipe() {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    const chunks = this.#chunks;
    this.#chunks = [];
    if (native.pipeBody(this.#call, concat(chunks), this.#ended)) {
      this.#ended = true;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      this.#ended = false; // it ends when the last byte is sent
      this.#reader = { resolve, reject };
    });
  }

  /** Reads until the worker has got `count` bytes since the start. What follows comes no more: Python has it. */
  async readUpTo(count) {
    const chunks = [];
    while (this.#taken < count) chunks.push(await this.read());
    this.#ended = true;
    return concat(chunks);
  }

  /** The worker does not read the rest. */
  cancel() {
    if (this.#ended) return;
    this.#ended = true;
    this.#chunks.length = 0;
    native.stopBody(this.#call);
  }

  /** The call is over. Unread data is lost, and reading it is an error: the body must not look empty. */
  close() {
    if (this.#ended && this.#chunks.length === 0) return;
    const hadEnded = this.#ended;
    this.#ended = true;
    this.#chunks.length = 0;
    this.#error ??= new TypeError("Can't read from request stream after response has been sent.");
    if (!hadEnded) native.stopBody(this.#call);
    this.#reader?.reject(this.#error);
    this.#reader = null;
  }

  /** From the engine: a chunk, or null at the end. */
  push(chunk) {
    if (this.#ended) return;
    if (chunk === null) this.#ended = true;
    else this.#chunks.push(chunk);
    const reader = this.#reader;
    if (reader === null) return;
    this.#reader = null;
    reader.resolve(chunk === null ? null : this.#take());
  }

  /** From the engine: the client disconnected. */
  fail(error) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#reader?.reject(error);
    this.#reader = null;
  }

  #take() {
    const chunk = this.#chunks.shift();
    this.#taken += chunk.byteLength;
    native.tookBody(this.#call, chunk.byteLength);
    return chunk;
  }
}

/** A response body that is sent in chunks, as fast as the client reads them. */
export class OutgoingBody {
  #call;
  #source; // { read(): Promise<Uint8Array | null>, cancel(reason) }, and pipe() if the engine can send it without JavaScript
  #waiting = null; // resolves when there is credit again
  #stopped = false;

  constructor(call, source) {
    this.#call = call;
    this.#source = source;
  }

  /** Sends the whole body. Resolves at the end; rejects with the error that broke the stream. */
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

  // Sends the rest of a chunk whenever there is credit.
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

  /** From the engine: the client has read some data. */
  resume() {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.();
  }

  /** From the engine: the client disconnected. */
  stop(reason) {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#source.cancel(reason);
    this.resume();
  }
}

export function concat(chunks) {
  if (chunks.length === 1) return chunks[0];
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
}

/** A source of bytes that are complete but too many for one frame. */
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

/** A source that reads a worker's stream. */
export function sourceOfStream(stream) {
  const reader = stream.getReader();
  return {
    read: () => readNext(reader),
    cancel: (reason) => void reader.cancel(reason).catch(() => {}),
  };
}
