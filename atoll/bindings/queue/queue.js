// A queue as a producer sees it. https://developers.cloudflare.com/queues/configuration/javascript-apis/#queue
// store.py keeps the messages.
import "./batch.js";
import { serialize } from "#web/dom/clone.js";
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { encodeText } from "#web/internal/text.js";
import { isOn } from "#web/worker/compatibility.js";

const send = defineOp("queue.send");

/** The bytes of a message of each content type. */
const ENCODERS = {
  __proto__: null,
  json(body) {
    const text = JSON.stringify(body);
    if (text === undefined) throw new TypeError(`A message of the type "json" cannot be ${typeof body}.`);
    return encodeText(text);
  },
  text(body) {
    if (typeof body !== "string") throw new TypeError('A message of the type "text" must be a string.');
    return encodeText(body);
  },
  bytes(body) {
    if (body instanceof ArrayBuffer) return new Uint8Array(body);
    if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
    throw new TypeError('A message of the type "bytes" must be an ArrayBuffer or a view of one.');
  },
  v8: (body) => serialize(body).bytes,
};

function encode(body, { contentType = isOn("queues_json_messages") ? "json" : "v8", delaySeconds } = {}) {
  const encoder = ENCODERS[contentType];
  if (encoder === undefined) {
    throw new TypeError(`The content type of a message is "${contentType}"; it may be ${Object.keys(ENCODERS).join(", ")}.`);
  }
  return { bytes: encoder(body), type: contentType, delay: delaySeconds };
}

function join(messages) {
  const whole = new Uint8Array(messages.reduce((sum, { bytes }) => sum + bytes.length, 0));
  let at = 0;
  for (const { bytes } of messages) {
    whole.set(bytes, at);
    at += bytes.length;
  }
  return whole;
}

export class Queue {
  #name;

  constructor(name) {
    this.#name = name;
  }

  async send(body, options = undefined) {
    await this.#send([encode(body, options ?? {})], undefined);
  }

  async sendBatch(messages, options = undefined) {
    if (typeof messages !== "object" || messages === null || typeof messages[Symbol.iterator] !== "function") {
      throw new TypeError("sendBatch() takes a list of messages, each an object with a `body`.");
    }
    const list = Array.from(messages, (message) => {
      if (typeof message !== "object" || message === null) throw new TypeError("sendBatch(): a message is an object with a `body`.");
      return encode(message.body, message);
    });
    if (list.length === 0) throw new TypeError("sendBatch() was given no message.");
    await this.#send(list, options?.delaySeconds);
  }

  async #send(messages, delay) {
    const sizes = messages.map((message) => [message.bytes.length, message.type, message.delay ?? null]);
    await send({ binding: this.#name, messages: sizes, delay }, join(messages));
  }
}

defineBinding("queue", Queue);
