// The messages of all RPC sessions of one call, to and from Python: the only part of RPC that knows how they travel.
//
// Messages are sent in order, one batch at a time: those that come up meanwhile form the next batch. They are received while any
// session expects one. Each is [session, kind, id, target, path, size] and a body; session.js has the kinds.
import { receiveMessages, sendMessages } from "#bindings/rpc/rpc.js";
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { concat } from "../worker/bodies.js";
import { runningCall } from "../worker/call.js";
import { inCall } from "./local.js";
import { Session } from "./session.js";

const MOST_MESSAGES = 256; // of a batch,
const BATCH_BYTES = 1 << 20; // which ends with the message that reaches this size

const isAnswer = (kind) => kind === "r" || kind === "t";

let last = 0; // the number of the latest session of this isolate

export class Channel {
  #sessions = new Map(); // by number
  #outbox = []; // [message, body]
  #answers = 0; // in the outbox or being sent
  #isSending = false;
  #isReceiving = false;

  constructor(owner) {
    this.owner = owner; // the id of the call
  }

  /** A session that this call begins. */
  open() {
    return new Session(this, ++last);
  }

  /** The session in which this call is the callee. */
  inbound() {
    let session = this.#sessions.get(0);
    if (session === undefined) this.add((session = new Session(this, 0)));
    return session;
  }

  /** From now on `session` receives messages. */
  add(session) {
    this.#sessions.set(session.number, session);
  }

  remove(session) {
    this.#sessions.delete(session.number);
  }

  /** Whether answers are on their way that Python has not taken yet. */
  get owesAnswers() {
    return this.#answers > 0;
  }

  /** Tells Python that the callee holds stubs of its caller: the session lasts until the end of the call. */
  attach() {
    inCall(this.owner, () => sendMessages({ m: [] }).catch(() => {}));
  }

  post(session, kind, id, target, path, body) {
    if (isAnswer(kind)) this.#answers++;
    this.#outbox.push([[session.number, kind, id, target, path, body.length], body]);
    if (!this.#isSending) inCall(this.owner, () => this.#send());
  }

  async #send() {
    this.#isSending = true;
    while (this.#outbox.length > 0) {
      const messages = [];
      const bodies = [];
      for (let size = 0; messages.length < MOST_MESSAGES && size < BATCH_BYTES && this.#outbox.length > 0; ) {
        const [message, body] = this.#outbox[0];
        if (messages.length > 0 && size + body.length > BATCH_BYTES) break;
        this.#outbox.shift();
        messages.push(message);
        bodies.push(body);
        size += body.length;
      }
      try {
        await sendMessages({ m: messages }, concat(bodies));
      } catch (error) {
        this.#lose(messages, error);
      }
      this.#answers -= messages.filter(([, kind]) => isAnswer(kind)).length;
    }
    this.#isSending = false;
    for (const session of this.#sessions.values()) session.checkHeld();
  }

  /** Messages that could not be sent end their sessions: what follows them would have no meaning. */
  #lose(messages, error) {
    for (const number of new Set(messages.map(([session]) => session))) this.#sessions.get(number)?.end(error);
  }

  /** Receives messages while any session expects some. */
  listen() {
    if (this.#isReceiving) return;
    this.#isReceiving = true;
    inCall(this.owner, () => this.#receive());
  }

  async #receive() {
    try {
      while ([...this.#sessions.values()].some((session) => session.expects)) this.#dispatch(await receiveMessages({}));
    } catch (error) {
      // The op was refused: too many are under way, or the worker's memory is full.
      for (const session of [...this.#sessions.values()]) session.end(error);
    }
    this.#isReceiving = false;
  }

  #dispatch({ meta, body }) {
    let at = 0;
    for (const [number, kind, id, target, path, size] of meta.m) {
      const bytes = body.subarray(at, (at += size));
      this.#sessions.get(number)?.receive(kind, id, target, path, bytes);
    }
  }

  /** The call is over. */
  close() {
    for (const session of [...this.#sessions.values()]) {
      if (session.isInUse) session.end(new Error("Network connection lost."));
    }
  }
}

/** The channel of a call. */
export function channelOf(call) {
  call.rpc ??= new Channel(call.id);
  return call.rpc;
}

/** The channel of the running code. */
export function currentChannel() {
  const call = runningCall(callOf(native.getAsyncContext()));
  if (call === undefined) throw new Error("RPC can be used only while a request is handled, not by top-level code or after its end.");
  return channelOf(call);
}
