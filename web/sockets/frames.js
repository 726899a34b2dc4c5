// Messages within the byte stream to and from Python: u8 kind, u32 length, bytes. Kind 3 is a close: u16 code, reason.
import { decodeText, encodeText } from "../internal/text.js";
import { startTimer } from "../timers.js";

const HEAD = 5;
export const CLOSE = 3;

export function frame(kind, bytes) {
  const whole = new Uint8Array(HEAD + bytes.length);
  const view = new DataView(whole.buffer);
  view.setUint8(0, kind);
  view.setUint32(1, bytes.length, true);
  whole.set(bytes, HEAD);
  return whole;
}

export function closeFrame(code, reason) {
  const text = encodeText(reason);
  const body = new Uint8Array(2 + text.length);
  new DataView(body.buffer).setUint16(0, code, true);
  body.set(text, 2);
  return frame(CLOSE, body);
}

/** Delivers messages to a listener. Each message is a separate task, as the standard requires, so promises settle in between. */
export async function tell(listener, items) {
  for (let i = 0; i < items.length; i++) {
    if (listener.ready !== undefined) await listener.ready(); // it forwards messages as fast as its receiver reads them
    else if (i > 0) await nextTask();
    listener.hear(items[i]);
  }
}

function nextTask() {
  return new Promise((resolve) => {
    try {
      startTimer(resolve, 0);
    } catch {
      resolve(); // no timer can be set, because the worker has too many
    }
  });
}

/** Assembles messages from chunks of the stream. */
export class FrameReader {
  #parts = [];
  #size = 0;

  /** Takes a chunk and returns the complete messages: { kind, bytes } or { code, reason, clean }. */
  push(chunk) {
    this.#parts.push(chunk);
    this.#size += chunk.length;
    const found = [];
    while (this.#size >= HEAD) {
      const head = this.#peek(HEAD);
      const length = new DataView(head.buffer, head.byteOffset, HEAD).getUint32(1, true);
      if (this.#size < HEAD + length) break;
      const whole = this.#take(HEAD + length);
      found.push(read(whole[0], whole.subarray(HEAD)));
    }
    return found;
  }

  #peek(size) {
    if (this.#parts[0].length < size) this.#parts = [this.#join()];
    return this.#parts[0];
  }

  #take(size) {
    const all = this.#parts[0].length >= size ? this.#parts.shift() : this.#join();
    if (all.length > size) this.#parts.unshift(all.subarray(size));
    this.#size -= size;
    return all.subarray(0, size);
  }

  #join() {
    const all = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    this.#parts = [];
    return all;
  }
}

function read(kind, bytes) {
  if (kind !== CLOSE) return { kind, bytes };
  const code = new DataView(bytes.buffer, bytes.byteOffset).getUint16(0, true);
  return { code, reason: decodeText(bytes.subarray(2)), clean: code !== 1006 };
}
