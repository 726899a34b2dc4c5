// https://html.spec.whatwg.org/multipage/comms.html#messageevent and https://websockets.spec.whatwg.org/#closeevent
import { Event } from "./event.js";
import { defineInterface } from "../internal/platform.js";
import { NO_OPTIONS, requireArguments, toDOMString, toSequence, toUnsigned, toUSVString } from "../internal/webidl.js";

let isMessagePort = () => false; // set by message_port.js, which depends on this file

export function setPorts(isPort) {
  isMessagePort = isPort;
}

function toPorts(value, where) {
  const ports = toSequence(value, where);
  if (!ports.every(isMessagePort)) throw new TypeError(`${where}: a value in ports is not a MessagePort.`);
  return Object.freeze(ports);
}

export class MessageEvent extends Event {
  #data;
  #origin;
  #lastEventId;
  #source;
  #ports;

  constructor(type, init = undefined) {
    requireArguments(arguments.length, 1, "MessageEvent constructor");
    super(type, init);
    const { data = null, lastEventId = "", origin = "", ports = [], source = null } = init ?? NO_OPTIONS;
    this.#data = data;
    this.#lastEventId = toDOMString(lastEventId);
    this.#origin = toUSVString(origin);
    this.#ports = toPorts(ports, "MessageEvent constructor");
    if (source !== null && !isMessagePort(source)) throw new TypeError("MessageEvent constructor: source is not a MessagePort.");
    this.#source = source;
  }

  get data() {
    return this.#data;
  }

  get origin() {
    return this.#origin;
  }

  get lastEventId() {
    return this.#lastEventId;
  }

  get source() {
    return this.#source;
  }

  get ports() {
    return this.#ports;
  }

  /** https://html.spec.whatwg.org/multipage/comms.html#dom-messageevent-initmessageevent */
  initMessageEvent(type, bubbles = false, cancelable = false, data = null, origin = "", lastEventId = "", source = null, ports = []) {
    requireArguments(arguments.length, 1, "MessageEvent.initMessageEvent");
    this.#data; // a brand check before anything else
    if (this.eventPhase !== 0) return;
    this.initEvent(type, bubbles, cancelable);
    this.#data = data;
    this.#origin = toUSVString(origin);
    this.#lastEventId = toDOMString(lastEventId);
    this.#source = source;
    this.#ports = toPorts(ports, "MessageEvent.initMessageEvent");
  }
}

defineInterface(MessageEvent);

export class CloseEvent extends Event {
  #wasClean;
  #code;
  #reason;

  constructor(type, init = undefined) {
    requireArguments(arguments.length, 1, "CloseEvent constructor");
    super(type, init);
    const { code = 0, reason = "", wasClean = false } = init ?? NO_OPTIONS;
    this.#code = toUnsigned(code, 16);
    this.#reason = toUSVString(reason);
    this.#wasClean = !!wasClean;
  }

  get wasClean() {
    return this.#wasClean;
  }

  get code() {
    return this.#code;
  }

  get reason() {
    return this.#reason;
  }
}

defineInterface(CloseEvent);
