// The link of a call that became a WebSocket: its request body brings messages, its response body takes them.
import { closeFrame, frame, FrameReader, tell } from "../sockets/frames.js";
import { OutgoingBody } from "./bodies.js";

const MUCH = 1024 * 1024; // unsent bytes that hold up whoever asks with ready()

export class SocketPort {
  #call;
  #listener; // { hear(item) } at the worker's end, and ready() if it wants to be waited for
  #queue = []; // frames that have not left
  #wake = null;
  #ended = false; // nothing more will be sent
  #heardClose = false;
  #onRoom = null;
  buffered = 0;

  constructor(call, listener) {
    this.#call = call;
    this.#listener = listener;
  }

  /** Runs until both sides are closed. */
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
      // The client is gone, which is told like an end without a close.
    }
    this.lost();
  }

  /** The client is gone. */
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
      const bytes = this.#queue.shift();
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

  send(kind, bytes) {
    if (!this.#ended) this.#push(frame(kind, bytes));
  }

  /** The other side answers with a close of its own, which ends the link. */
  close(code, reason) {
    if (!this.#ended) this.#push(closeFrame(code, reason));
  }

  #push(bytes) {
    this.#queue.push(bytes);
    this.buffered += bytes.length;
    this.#wake?.();
  }
}
