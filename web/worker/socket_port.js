// The link of a call that became a WebSocket: its request body brings messages, its response body takes them.
import { closeFrame, frame, FrameReader } from "../sockets/frames.js";
import { hear } from "../sockets/websocket.js";
import { OutgoingBody } from "./bodies.js";

export class SocketPort {
  #call;
  #socket; // the worker's end
  #queue = []; // frames that have not left
  #wake = null;
  #ended = false; // nothing more will be sent
  #heardClose = false;
  buffered = 0;

  constructor(call, socket) {
    this.#call = call;
    this.#socket = socket;
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
        for (const item of reader.push(chunk)) {
          if (item.kind === undefined) this.#heardClose = true;
          hear(this.#socket, item);
        }
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
      hear(this.#socket, { code: 1006, reason: "WebSocket disconnected without sending Close frame.", clean: false });
    }
    this.#end();
  }

  #end() {
    this.#ended = true;
    this.#wake?.();
  }

  #next() {
    if (this.#queue.length > 0) {
      const bytes = this.#queue.shift();
      this.buffered -= bytes.length;
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
