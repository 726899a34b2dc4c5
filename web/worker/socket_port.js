// The engine's side of a call that became a WebSocket: messages arrive as its request body and leave as its response body.
import { closeFrame, frame, FrameReader, tell } from "../sockets/frames.js";
import { concat, OutgoingBody } from "./bodies.js";

const PIECE = 64 * 1024; // most bytes in one chunk
const MUCH = 1024 * 1024; // ready() waits while this many bytes are unsent

export class SocketPort {
  #call;
  #listener; // { hear(item) } at the worker's end, and ready() if the sender should wait for it
  #queue = []; // unsent frames
  #wake = null;
  #ended = false; // nothing more is sent
  #heardClose = false;
  #onRoom = null;
  buffered = 0;

  constructor(call, listener) {
    this.#call = call;
    this.#listener = listener;
  }

  /** Runs until both sides have closed. */
  async run(incoming, outgoing) {
    await Promise.all([this.#receive(incoming), outgoing.send()]);
  }

  makeOutgoing() {
    return new OutgoingBody(this.#call.id, { read: () => this.#next(), cancel: () => this.#end() });
  }

  async #receive(incoming) {
    const reader = new FrameReader();
    try {
      for (let chunk = await incoming.read(); chunk !== null; chunk = await incoming.read()) {
        const items = reader.push(chunk);
        this.#heardClose ||= items.some(({ kind }) => kind === undefined);
        await tell(this.#listener, items);
      }
    } catch {
      // The client disconnected. The listener hears that as an end without a close frame.
    }
    this.lost();
  }

  /** The client disconnected. */
  lost() {
    if (!this.#heardClose) {
      this.#heardClose = true;
      this.#listener.hear({ code: 1006, reason: "WebSocket disconnected without sending Close frame.", clean: false });
    }
    this.#end();
  }

  #end() {
    this.#ended = true;
    this.#wake?.();
    this.#makeRoom();
  }

  /** Resolves when there is room for more. */
  ready() {
    if (this.buffered <= MUCH || this.#ended) return undefined;
    return new Promise((resolve) => {
      this.#onRoom = resolve;
    });
  }

  #makeRoom() {
    this.#onRoom?.();
    this.#onRoom = null;
  }

  #next() {
    if (this.#queue.length > 0) {
      const bytes = this.#takeSome();
      this.buffered -= bytes.length;
      if (this.buffered <= MUCH) this.#makeRoom();
      return Promise.resolve(bytes);
    }
    if (this.#ended) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = null;
        resolve(this.#next());
      };
    });
  }

  // Takes the first frame and as many more as fit in one chunk, so that many small messages are sent together.
  #takeSome() {
    let count = 1;
    let size = this.#queue[0].length;
    while (count < this.#queue.length && size + this.#queue[count].length <= PIECE) size += this.#queue[count++].length;
    return concat(this.#queue.splice(0, count));
  }

  send(kind, bytes) {
    if (!this.#ended) this.#push(frame(kind, bytes));
  }

  /** Sends a close frame. The other side answers with its own, which ends the connection. */
  close(code, reason) {
    if (!this.#ended) this.#push(closeFrame(code, reason));
  }

  #push(bytes) {
    this.#queue.push(bytes);
    this.buffered += bytes.length;
    this.#wake?.();
  }
}
