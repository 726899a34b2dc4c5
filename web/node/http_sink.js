// What a ServerResponse sends, as a Response of fetch. Data flows under backpressure: beyond the high-water mark of the body it
// waits here until the client has read.
import { Response } from "../fetch/response.js";
import { ReadableStream } from "../streams/streams.js";
import { Buffer } from "./buffer.js";
import { nextTick } from "./process.js";

const HIGH_WATER_MARK = 65536;

export class ResponseSink {
  heldBytes = 0;
  #message;
  #answer = Promise.withResolvers();
  #head = null;
  #left = Infinity; // bytes that Content-Length still allows
  #early = []; // written before the Response exists
  #earlyBytes = 0;
  #controller = null;
  #held = []; // [bytes, callback]
  #onEnd = null;
  #isDone = false;

  constructor(message) {
    this.#message = message;
  }

  /** A promise for the Response. */
  get response() {
    return this.#answer.promise;
  }

  get wantsMore() {
    return this.#controller === null ? this.#earlyBytes < HIGH_WATER_MARK : this.#controller.desiredSize > 0;
  }

  head(status, statusText, headers) {
    this.#head = { status, statusText, headers: [] };
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i].toLowerCase();
      if (name === "content-length") this.#left = Number(headers[i + 1]);
      if (name !== "transfer-encoding" && name !== "connection") this.#head.headers.push([headers[i], headers[i + 1]]);
    }
    // A handler that ends its response at once needs no stream.
    nextTick(() => this.#open());
  }

  #open() {
    if (this.#isDone || this.#controller !== null) return;
    try {
      this.#answer.resolve(this.#makeResponse());
    } catch (error) {
      this.destroy(error);
    }
  }

  #makeResponse() {
    const chunks = this.#early;
    this.#early = [];
    if (!this.#message._hasBody) return this.#ended(null);
    if (this.#onEnd !== null) return this.#ended(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    const body = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
          for (const chunk of chunks) controller.enqueue(chunk);
        },
        pull: () => this.#pull(),
        cancel: (reason) => this.#message.destroy(reason),
      },
      { highWaterMark: HIGH_WATER_MARK, size: (chunk) => chunk.byteLength },
    );
    return new Response(body, this.#head);
  }

  #ended(body) {
    this.#isDone = this.#onEnd !== null;
    return new Response(body, this.#head);
  }

  write(bytes, callback) {
    const chunk = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left);
    this.#left -= chunk.length;
    if (this.#isDone || chunk.length === 0) {
      nextTick(callback);
    } else if (this.#controller === null) {
      this.#early.push(Buffer.from(chunk)); // a copy, because the writer may use its buffer again
      this.#earlyBytes += chunk.length;
      nextTick(callback);
    } else if (this.#controller.desiredSize > 0 && this.#held.length === 0) {
      this.#controller.enqueue(Buffer.from(chunk));
      nextTick(callback);
    } else {
      this.#held.push([Buffer.from(chunk), callback]);
      this.heldBytes += chunk.length;
    }
    return this.wantsMore;
  }

  #pull() {
    while (this.#held.length > 0 && this.#controller.desiredSize > 0) {
      const [chunk, callback] = this.#held.shift();
      this.heldBytes -= chunk.length;
      this.#controller.enqueue(chunk);
      nextTick(callback);
    }
    if (this.#held.length > 0) return;
    if (this.#onEnd !== null) this.#close();
    else this.#message._drain();
  }

  #close() {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#controller.close();
    nextTick(this.#onEnd);
  }

  /** `callback` is called once the client's side has taken all data. */
  end(callback) {
    this.#onEnd = callback;
    if (this.#controller === null) nextTick(callback);
    else if (this.#held.length === 0) this.#close();
  }

  destroy(error = undefined) {
    const reason = error ?? new Error("The response was destroyed before it ended.");
    this.#held = [];
    this.heldBytes = 0;
    this.#answer.promise.catch(() => {}); // the caller of the handler has its own reaction
    if (this.#onEnd === null) this.#answer.reject(reason);
    if (this.#isDone) return;
    if (this.#onEnd === null) this.#isDone = true;
    if (this.#controller !== null && this.#onEnd === null) this.#controller.error(reason);
  }
}
