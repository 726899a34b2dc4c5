// https://websockets.spec.whatwg.org/ and https://developers.cloudflare.com/workers/runtime-apis/websockets/
//
// A WebSocket stands at one end of a link: the other end of a pair in the same isolate, or a port that leads to a client or a
// server. An end hears nothing before accept(): what comes until then waits.
import { CloseEvent, MessageEvent } from "../dom/message_event.js";
import { EventTarget, fireEvent, HandlerSlot } from "../dom/event_target.js";
import { DOMException } from "../dom/exception.js";
import { Blob } from "../file/blob.js";
import { defineConstants, defineInterface } from "../internal/platform.js";
import { decodeText, encodeText } from "../internal/text.js";
import { requireArguments, toUnsigned, toUSVString } from "../internal/webidl.js";
import { queueMicrotask } from "../timers.js";

const INTERNAL = Symbol("made by the platform");
const HANDLERS = ["open", "message", "close", "error"];
const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
const NO_STATUS = 1005;

export const TEXT = 1;
export const BINARY = 2;

// Set by the class for those who make and link ends.
export let createSocket;
export let linkTo;
export let takeClient;
export let hear;
export let isWebSocket;

export class WebSocket extends EventTarget {
  #state = CONNECTING;
  #accepted = false;
  #taken = null; // the port that stands in its place once it went out with a Response
  #peer = null; // { send(kind, bytes), close(code, reason), buffered }
  #waiting = []; // what came before accept()
  #handlers = null; // of the event handler attributes
  #closeSent = false;
  #binaryType = "arraybuffer";

  constructor(url) {
    super();
    if (url === INTERNAL) return;
    requireArguments(arguments.length, 1, "WebSocket constructor");
    throw new DOMException("A worker cannot open a WebSocket to a server yet: use new WebSocketPair().", "NotSupportedError");
  }

  get url() {
    return "";
  }

  get protocol() {
    return "";
  }

  get extensions() {
    return "";
  }

  get readyState() {
    return this.#state;
  }

  get bufferedAmount() {
    return this.#peer?.buffered ?? 0;
  }

  get binaryType() {
    return this.#binaryType;
  }

  set binaryType(value) {
    if (value === "blob" || value === "arraybuffer") this.#binaryType = value;
  }

  /** Hear from now on what comes, beginning with what has come already. */
  accept() {
    if (this.#taken !== null) throw new TypeError("Can't accept() a WebSocket that was already used in a Response.");
    if (this.#accepted) return;
    this.#accepted = true;
    if (this.#state === CONNECTING) this.#state = OPEN;
    const waiting = this.#waiting;
    this.#waiting = [];
    // Listeners are usually added right after accept(): what waits is told when the code that accepts has ended.
    if (waiting.length > 0) queueMicrotask(() => waiting.forEach((item) => this.#hear(item)));
  }

  /** https://websockets.spec.whatwg.org/#dom-websocket-send */
  send(data) {
    requireArguments(arguments.length, 1, "WebSocket.send");
    this.#requireUse("send()");
    if (this.#closeSent || this.#state >= CLOSING) {
      throw new TypeError("Can't call WebSocket send() after close().");
    }
    const [kind, bytes] = encode(data);
    this.#peer.send(kind, bytes);
  }

  /** https://websockets.spec.whatwg.org/#dom-websocket-close */
  close(code = undefined, reason = undefined) {
    let number = NO_STATUS;
    if (code !== undefined) {
      number = toUnsigned(code, 16, { clamp: true });
      if (!isSendable(number)) throw new DOMException(`${number} is no close code that may be sent.`, "InvalidAccessError");
    }
    const text = reason === undefined ? "" : toUSVString(reason);
    if (encodeText(text).length > 123) throw new DOMException("The reason of a close has at most 123 bytes.", "SyntaxError");
    if (text !== "" && code === undefined) throw new DOMException("A reason needs a close code.", "SyntaxError");
    this.#requireUse("close()");
    if (this.#closeSent || this.#state === CLOSED) return;
    this.#closeSent = true;
    this.#state = CLOSING;
    this.#peer.close(number, text);
  }

  #requireUse(what) {
    if (this.#taken !== null) throw new TypeError(`Can't call WebSocket ${what}: it was used in a Response.`);
    if (!this.#accepted) throw new TypeError(`You must call accept() on this WebSocket before ${what}.`);
  }

  // What comes: { kind, bytes } of a message, { code, reason, clean } of a close.
  #hear(item) {
    if (this.#taken !== null) {
      if (item.kind === undefined) this.#taken.close(item.code, item.reason);
      else this.#taken.send(item.kind, item.bytes);
      return;
    }
    if (!this.#accepted) {
      this.#waiting.push(item);
      return;
    }
    if (this.#state === CLOSED) return;
    if (item.kind === undefined) this.#end(item);
    else if (!this.#closeSent) {
      fireEvent(this, new MessageEvent("message", { data: decode(item, this.#binaryType) }));
    }
  }

  #end({ code, reason, clean }) {
    this.#state = CLOSED;
    const answer = !this.#closeSent;
    this.#closeSent = true;
    if (answer && clean) this.#peer?.close(code, reason);
    fireEvent(this, new CloseEvent("close", { code, reason, wasClean: clean }));
  }

  get onopen() {
    return this.#handler("open");
  }

  set onopen(handler) {
    this.#setHandler("open", handler);
  }

  get onmessage() {
    return this.#handler("message");
  }

  set onmessage(handler) {
    this.#setHandler("message", handler);
  }

  get onclose() {
    return this.#handler("close");
  }

  set onclose(handler) {
    this.#setHandler("close", handler);
  }

  get onerror() {
    return this.#handler("error");
  }

  set onerror(handler) {
    this.#setHandler("error", handler);
  }

  #handler(type) {
    return this.#handlers === null ? null : this.#handlers[type].get();
  }

  #setHandler(type, handler) {
    this.#handlers ??= Object.fromEntries(HANDLERS.map((each) => [each, new HandlerSlot(each)]));
    this.#handlers[type].set(this, handler);
  }

  static {
    isWebSocket = (value) => typeof value === "object" && value !== null && #peer in value;
    createSocket = () => new this(INTERNAL);
    linkTo = (socket, peer) => {
      socket.#peer = peer;
    };
    hear = (socket, item) => socket.#hear(item);
    // The end that goes to the client: its peer speaks to `port` from now on, also what it has said already.
    takeClient = (socket, makePort) => {
      if (socket.#accepted || socket.#taken !== null) throw new TypeError("Can't return a WebSocket in a Response after calling accept().");
      const server = socket.#peer.end;
      // Only what is said from now on goes straight to the port: what is on its way comes through here, and first.
      socket.#taken = makePort(server);
      queueMicrotask(() => linkTo(server, socket.#taken));
      for (const item of socket.#waiting.splice(0)) socket.#hear(item);
    };
  }
}

defineInterface(WebSocket);
defineConstants(WebSocket, { CONNECTING, OPEN, CLOSING, CLOSED });

/** https://www.rfc-editor.org/rfc/rfc6455#section-7.4 */
function isSendable(code) {
  return (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) || (code >= 3000 && code <= 4999);
}

function encode(data) {
  if (data instanceof ArrayBuffer) return [BINARY, new Uint8Array(data.slice(0))];
  if (ArrayBuffer.isView(data)) return [BINARY, new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice()];
  if (data instanceof Blob) throw new TypeError("A WebSocket cannot send a Blob at once: send `await blob.arrayBuffer()`.");
  return [TEXT, encodeText(toUSVString(data))];
}

function decode({ kind, bytes }, binaryType) {
  if (kind === TEXT) return decodeText(bytes);
  const buffer = bytes.slice().buffer;
  return binaryType === "blob" ? new Blob([buffer]) : buffer;
}

/** The other end of a pair as the peer of this one. What is said arrives in a microtask of its own. */
class LocalPeer {
  constructor(end) {
    this.end = end;
  }

  get buffered() {
    return 0;
  }

  send(kind, bytes) {
    queueMicrotask(() => hear(this.end, { kind, bytes }));
  }

  close(code, reason) {
    queueMicrotask(() => hear(this.end, { code, reason, clean: true }));
  }
}

/** https://developers.cloudflare.com/workers/runtime-apis/websockets/#websocketpair */
export class WebSocketPair {
  constructor() {
    const client = createSocket();
    const server = createSocket();
    linkTo(client, new LocalPeer(server));
    linkTo(server, new LocalPeer(client));
    this[0] = client;
    this[1] = server;
  }
}

defineInterface(WebSocketPair);
