// The queue event: a batch of messages for a worker, and its decision on each.
// https://developers.cloudflare.com/queues/configuration/javascript-apis/#messagebatch
import { deserialize } from "#web/dom/clone.js";
import { defineEvent } from "#web/internal/events.js";
import { decodeText } from "#web/internal/text.js";
import { callHandler } from "#web/worker/events.js";
import { MAX_DELAY } from "./bounds.gen.js";

const DECODERS = {
  __proto__: null,
  json: (bytes) => JSON.parse(decodeText(bytes)),
  text: (bytes) => decodeText(bytes),
  bytes: (bytes) => bytes.slice().buffer,
  v8: (bytes) => deserialize(bytes),
};

/** The decisions on a batch. The first one on a message counts, whether for that message or for all. */
class Verdict {
  all = undefined; // for every message without a decision of its own
  messages = new Map(); // id -> { ack: true } or { ack: false, delay }

  say(id, verdict) {
    if (this.all === undefined && !this.messages.has(id)) this.messages.set(id, verdict);
  }

  sayAll(verdict) {
    this.all ??= verdict;
  }

  toJSON() {
    return { all: this.all ?? null, messages: Object.fromEntries(this.messages) };
  }
}

const ACK = { ack: true };
const retry = (options) => ({ ack: false, delay: secondsOf(options?.delaySeconds) });

function secondsOf(value) {
  if (value === undefined || value === null) return null;
  const seconds = Number(value);
  if (!(seconds >= 0 && seconds <= MAX_DELAY)) {
    throw new TypeError(`delaySeconds is ${String(value)}, but must be a number from 0 to ${MAX_DELAY}.`);
  }
  return seconds;
}

class Message {
  #verdict;

  constructor(verdict, { id, timestamp, attempts }, body) {
    this.#verdict = verdict;
    Object.defineProperties(this, {
      id: { value: id, enumerable: true },
      timestamp: { value: new Date(timestamp), enumerable: true },
      attempts: { value: attempts, enumerable: true },
      body: { value: body, enumerable: true },
    });
  }

  ack() {
    this.#verdict.say(this.id, ACK);
  }

  retry(options = undefined) {
    this.#verdict.say(this.id, retry(options));
  }
}

class MessageBatch {
  #queue;
  #messages;
  #verdict;

  constructor(queue, messages, verdict) {
    this.#queue = queue;
    this.#messages = messages;
    this.#verdict = verdict;
  }

  get queue() {
    return this.#queue;
  }

  get messages() {
    return this.#messages;
  }

  ackAll() {
    this.#verdict.sayAll(ACK);
  }

  retryAll(options = undefined) {
    this.#verdict.sayAll(retry(options));
  }
}

/** The messages of a batch: `meta` has their sizes and facts, `body` all their bytes. */
function readMessages(meta, body, verdict) {
  let at = 0;
  return meta.map((facts) => {
    const bytes = body.subarray(at, (at += facts.size));
    return new Message(verdict, facts, DECODERS[facts.type](bytes));
  });
}

defineEvent("queue", async (target, meta, body, call) => {
  const verdict = new Verdict();
  const messages = readMessages(meta.messages, body ?? new Uint8Array(), verdict);
  call.said = verdict;
  await callHandler(target, "queue", new MessageBatch(meta.queue, Object.freeze(messages), verdict), call);
  return verdict; // read after waitUntil() is done: decisions made there count too
});
