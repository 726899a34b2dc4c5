// The engine's side of a WebSocket that fetch() opened. Frames arrive by the op fetch.read and leave by fetch.write. Frames that
// the server has not accepted yet are queued here.
import { closeFrame, frame, FrameReader, tell } from "./frames.js";
import { ConnectionCall } from "./holding.js";
import { createClientSocket } from "./websocket.js";

const PIECE = 128 * 1024; // most bytes of one write
const MUCH = 1024 * 1024; // ready() waits while this many bytes are unsent

class ClientPort {
  #ops; // { read, write, handOver } of fetch
  #fetch; // its id
  #call = new ConnectionCall(); // owns the ops
  #listener = null;
  #queue = []; // { bytes, size } of unsent frames; `size` counts as buffered
  #isSending = false;
  #hasClosed = false; // a close is queued or sent
  #isOver = false; // nothing sent is received any more
  #onRoom = null;
  buffered = 0;

  constructor(ops, number, isHeld) {
    this.#ops = ops;
    this.#fetch = number;
    this.isHeld = isHeld; // the other end is a socket that hibernates: a Response with this one needs no worker between them
  }

  /** Has Python connect the other end with the client of the running call. */
  connect() {
    this.#requireCall();
    this.#isOver = true;
    return this.#call.run(() => this.#ops.handOver({ fetch: this.#fetch }));
  }

  #requireCall() {
    if (this.#call.isOurs) return;
    throw new Error(
      "Cannot perform I/O on behalf of a different request: a WebSocket that was opened while one request was handled cannot be used by another.",
    );
  }

  /** Starts to deliver to the listener: hear(item), and ready() if the sender should wait for it. */
  start(listener) {
    this.#requireCall();
    this.#listener = listener;
    this.#call.hold();
    this.#call.run(() => this.#receive());
  }

  async #receive() {
    const reader = new FrameReader();
    const listener = this.#listener;
    let hasClosed = false;
    try {
      for (let isOpen = true; isOpen; ) {
        const { meta, body } = await this.#ops.read({ fetch: this.#fetch });
        isOpen = !meta.ended;
        const items = body.length > 0 ? reader.push(body) : [];
        hasClosed ||= items.some(({ kind }) => kind === undefined);
        await tell(listener, items);
      }
    } catch {
      // The server disconnected. The listener hears that as an end without a close frame.
    }
    if (!hasClosed) listener.hear({ code: 1006, reason: "", clean: false });
    this.#drop();
    this.#call.release();
  }

  /** Resolves when there is room for more. */
  ready() {
    if (this.buffered <= MUCH || this.#isOver) return undefined;
    return new Promise((resolve) => {
      this.#onRoom = resolve;
    });
  }

  send(kind, bytes) {
    this.#requireCall();
    if (!this.#hasClosed) this.#push(frame(kind, bytes), bytes.length);
  }

  close(code, reason) {
    this.#requireCall();
    if (this.#hasClosed) return;
    this.#hasClosed = true;
    this.#push(closeFrame(code, reason), 0);
  }

  #push(bytes, size) {
    if (this.#isOver) return;
    this.buffered += size;
    this.#queue.push({ bytes, size });
    if (!this.#isSending) this.#call.run(() => this.#send());
  }

  async #send() {
    this.#isSending = true;
    while (this.#queue.length > 0) {
      const { bytes, size } = this.#take();
      const ended = this.#hasClosed && this.#queue.length === 0;
      const isHeard = await this.#ops.write({ fetch: this.#fetch, ended }, bytes).then(
        ({ meta }) => meta.more,
        () => false,
      );
      this.buffered -= size;
      if (!isHeard) this.#drop();
      if (this.buffered <= MUCH) this.#makeRoom();
    }
    this.#isSending = false;
  }

  /** The next chunk to write: a part of a large frame, or as many small frames as fit. */
  #take() {
    const first = this.#queue[0];
    if (first.bytes.length > PIECE) {
      const bytes = first.bytes.subarray(0, PIECE);
      first.bytes = first.bytes.subarray(PIECE);
      return { bytes, size: 0 };
    }
    let count = 0;
    let length = 0;
    while (count < this.#queue.length && length + this.#queue[count].bytes.length <= PIECE) {
      length += this.#queue[count++].bytes.length;
    }
    const taken = this.#queue.splice(0, count);
    if (count === 1) return first;
    const bytes = new Uint8Array(length);
    let at = 0;
    let size = 0;
    for (const each of taken) {
      bytes.set(each.bytes, at);
      at += each.bytes.length;
      size += each.size;
    }
    return { bytes, size };
  }

  #drop() {
    this.#isOver = true;
    this.#queue.length = 0;
    this.#makeRoom();
  }

  #makeRoom() {
    this.#onRoom?.();
    this.#onRoom = null;
  }
}

/** The WebSocket for a response with status 101 to fetch number `number`; `ops` continue that fetch. */
export function socketOfFetch(ops, number, url, list, isHeld) {
  return createClientSocket(new ClientPort(ops, number, isHeld), {
    url: url.replace(/^http/, "ws"),
    protocol: list.get("sec-websocket-protocol") ?? "",
    extensions: list.get("sec-websocket-extensions") ?? "",
  });
}
