// https://html.spec.whatwg.org/multipage/web-messaging.html#broadcasting-to-other-browsing-contexts
//
// All listeners are in this isolate. Each gets its own clone, in a task that belongs to the call that posted the message.
import { structuredClone } from "./clone.js";
import { EventTarget, fireEvent, HandlerSlot } from "./event_target.js";
import { DOMException } from "./exception.js";
import { MessageEvent } from "./message_event.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toDOMString } from "../internal/webidl.js";
import { startTimer } from "../timers.js";

const open = new Set(); // open channels, in the order of their creation

export class BroadcastChannel extends EventTarget {
  #name;
  #onmessage = new HandlerSlot("message");
  #onmessageerror = new HandlerSlot("messageerror");

  constructor(name) {
    requireArguments(arguments.length, 1, "BroadcastChannel constructor");
    const converted = toDOMString(name);
    super();
    this.#name = converted;
    open.add(this);
  }

  get name() {
    return this.#name;
  }

  /** https://html.spec.whatwg.org/multipage/web-messaging.html#dom-broadcastchannel-postmessage */
  postMessage(message) {
    requireArguments(arguments.length, 1, "BroadcastChannel.postMessage");
    const name = this.#name;
    // Step 2.
    if (!open.has(this)) throw new DOMException("The channel is closed.", "InvalidStateError");
    // Steps 3 to 6. A message that cannot be cloned is an error even if no channel listens.
    const serialized = structuredClone(message);
    const listeners = [...open].filter((channel) => channel !== this && channel.#name === name);
    // Step 9.
    for (const channel of listeners) {
      const data = structuredClone(serialized);
      startTimer(() => {
        if (open.has(channel)) fireEvent(channel, new MessageEvent("message", { data }));
      }, 0);
    }
  }

  /** https://html.spec.whatwg.org/multipage/web-messaging.html#dom-broadcastchannel-close */
  close() {
    this.#name; // a brand check
    open.delete(this);
  }

  get onmessage() {
    return this.#onmessage.get();
  }

  set onmessage(handler) {
    this.#onmessage.set(this, handler);
  }

  get onmessageerror() {
    return this.#onmessageerror.get();
  }

  set onmessageerror(handler) {
    this.#onmessageerror.set(this, handler);
  }
}

defineInterface(BroadcastChannel, { name: "BroadcastChannel", describe: ({ name }) => ({ name }) });
