// https://html.spec.whatwg.org/multipage/web-messaging.html#message-channels
//
// Both ends are in one isolate. A message is cloned when it is posted and delivered in a separate task, which belongs to the call
// that posted it. Undelivered messages are lost when that call is over.
import { cloneWithTransfer, defineTransferable, toTransferList } from "./clone.js";
import { Event } from "./event.js";
import { EventTarget, fireEvent, HandlerSlot } from "./event_target.js";
import { DOMException } from "./exception.js";
import { MessageEvent, setPorts } from "./message_event.js";
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor, requireArguments, toDictionary } from "../internal/webidl.js";
import { startTimer } from "../timers.js";

const INTERNAL = Symbol("made by the platform");
const HANDLERS = ["message", "messageerror", "close"];

let entangle;

/** https://html.spec.whatwg.org/multipage/web-messaging.html#message-ports */
export class MessagePort extends EventTarget {
  #peer = null;
  #queue = []; // undelivered messages
  #enabled = false;
  #detached = false;
  #handlers = null; // of the event handler attributes

  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }

  /** https://html.spec.whatwg.org/multipage/web-messaging.html#dom-messageport-postmessage */
  postMessage(message, options = undefined) {
    requireArguments(arguments.length, 1, "MessagePort.postMessage");
    this.#handlers; // a brand check before anything else
    const isList = typeof options === "object" && options !== null && typeof options[Symbol.iterator] === "function";
    const { transfer = [] } = isList ? { transfer: options } : toDictionary(options, "MessagePort.postMessage");
    const list = toTransferList(transfer, "MessagePort.postMessage");
    // Step 2 of the message port post message steps.
    if (list.includes(this)) throw new DOMException("A port cannot be transferred through itself.", "DataCloneError");
    // Step 4: a message that transfers its own destination cannot be delivered.
    const peer = this.#peer;
    const isDoomed = peer !== null && list.includes(peer);
    const { value, moved } = cloneWithTransfer(message, list);
    if (peer === null || isDoomed) return;
    peer.#receive({ data: value, ports: moved.filter((item) => item instanceof MessagePort) });
  }

  /** https://html.spec.whatwg.org/multipage/web-messaging.html#dom-messageport-start */
  start() {
    if (this.#enabled) return;
    this.#enabled = true;
    for (const message of this.#queue) this.#schedule(message);
  }

  /** https://html.spec.whatwg.org/multipage/web-messaging.html#dom-messageport-close */
  close() {
    this.#detached = true;
    const peer = this.#peer;
    if (peer === null) return;
    this.#peer = peer.#peer = null;
    startTimer(() => fireEvent(peer, new Event("close")), 0);
  }

  get onmessage() {
    return this.#handler("message");
  }

  set onmessage(handler) {
    this.#setHandler("message", handler);
    this.start();
  }

  get onmessageerror() {
    return this.#handler("messageerror");
  }

  set onmessageerror(handler) {
    this.#setHandler("messageerror", handler);
  }

  get onclose() {
    return this.#handler("close");
  }

  set onclose(handler) {
    this.#setHandler("close", handler);
  }

  #handler(type) {
    return this.#handlers === null ? null : this.#handlers[type].get();
  }

  #setHandler(type, handler) {
    this.#handlers ??= Object.fromEntries(HANDLERS.map((each) => [each, new HandlerSlot(each)]));
    this.#handlers[type].set(this, handler);
  }

  #receive(message) {
    this.#queue.push(message);
    if (this.#enabled) this.#schedule(message);
  }

  #schedule(message) {
    startTimer(() => {
      const index = this.#queue.indexOf(message);
      if (index === -1) return; // the port has been transferred
      this.#queue.splice(index, 1);
      fireEvent(this, new MessageEvent("message", message));
    }, 0);
  }

  static {
    entangle = (a, b) => {
      a.#peer = b;
      b.#peer = a;
    };
    const is = (value) => typeof value === "object" && value !== null && #peer in value;
    setPorts(is);
    /** https://html.spec.whatwg.org/multipage/web-messaging.html#message-ports:transfer-steps */
    defineTransferable({
      is,
      begin(port) {
        if (port.#detached) throw new DOMException("A closed or transferred port cannot be transferred.", "DataCloneError");
        return new MessagePort(INTERNAL);
      },
      finish(port, successor) {
        port.#detached = true;
        successor.#queue = port.#queue;
        port.#queue = [];
        const peer = port.#peer;
        port.#peer = null;
        if (peer !== null) entangle(successor, peer);
      },
    });
  }
}

defineInterface(MessagePort, { name: "MessagePort", describe: () => ({}) });

/** https://html.spec.whatwg.org/multipage/web-messaging.html#messagechannel */
export class MessageChannel {
  #port1 = new MessagePort(INTERNAL);
  #port2 = new MessagePort(INTERNAL);

  constructor() {
    entangle(this.#port1, this.#port2);
  }

  get port1() {
    return this.#port1;
  }

  get port2() {
    return this.#port2;
  }
}

defineInterface(MessageChannel);
