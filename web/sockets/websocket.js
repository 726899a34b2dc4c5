// https://websockets.spec.whatwg.org/ and https://developers.cloudflare.com/workers/runtime-apis/websockets/
//
// A WebSocket is one end of a connection. The other end is its peer: the other half of a pair in the same isolate, a port to a
// client (worker/socket_port.js), or a port to a server (client_port.js). Every peer has send(kind, bytes) and
// close(code, reason). A socket made by `new WebSocket()` behaves as in browsers. All others behave as at Cloudflare: they
// receive nothing before accept(), and send() throws after a close.
import { deserialize, serialize } from "../dom/clone.js";
import { CloseEvent, MessageEvent } from "../dom/message_event.js";
import { ErrorEvent, Event } from "../dom/event.js";
import { EventTarget, fireEvent, HandlerSlot } from "../dom/event_target.js";
import { DOMException } from "../dom/exception.js";
import { defineConstants, defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { requireArguments, toClampedLong, toUSVString } from "../internal/webidl.js";
import { queueMicrotask } from "../timers.js";
import { isOn } from "../worker/compatibility.js";
import { connect, readAddress, readProtocols } from "./connect.js";
import { decode, encode, isOfServers } from "./payload.js";

const INTERNAL = Symbol("made by the platform");
const HANDLERS = ["open", "message", "close", "error"];
const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
const NO_STATUS = 1005;
const GOING_AWAY = 1001;
const BAD_GATEWAY = 1014;
const MAX_ATTACHMENT = 16_384; // bytes
const GONE = { send() {}, close() {} }; // Python connects the client with the end that hibernates

// Set by the class below, for code that creates and connects sockets.
export let createSocket;
export let createClientSocket;
export let linkTo;
export let takeClient;
export let hear;
export let isWebSocket;
export let acceptHibernatable; // for objects/sockets.js
export let checkHibernatable;
export let wakeHibernatable;
export let endHibernatable;
export let heldBehind;
export let heldOf;

const hasReasonLimit = isOn("websocket_close_reason_byte_limit");

export class WebSocket extends EventTarget {
  #state = OPEN;
  #accepted = false;
  #isHalfOpen = false; // the worker answers a close of the other side itself
  #taken = null; // the port that replaces the socket once a Response has used it
  #peer = null;
  #waiting = null; // items received before accept()
  #handlers = null; // of the event handler attributes
  #closeSent = false;
  #isOfBrowser = false; // made by `new WebSocket()`: nothing is delivered after close()
  #binaryType = isOn("websocket_standard_binary_type") ? "blob" : "arraybuffer";
  #server = null; // { url, protocol, extensions } if the peer is a server
  #connecting = null; // AbortController of `new WebSocket()`
  #unsent = 0; // bytes given to send() after the close
  #attachment = null; // bytes; a hibernatable socket has them at its peer

  /** https://websockets.spec.whatwg.org/#dom-websocket-websocket */
  constructor(url, protocols = []) {
    super();
    if (url === INTERNAL) return;
    requireArguments(arguments.length, 1, "WebSocket constructor");
    this.#isOfBrowser = true;
    this.#server = { url: readAddress(url), protocol: "", extensions: "" };
    const offered = readProtocols(protocols);
    this.#state = CONNECTING;
    this.#accepted = true;
    this.#connecting = connect(
      this.#server.url,
      offered,
      (socket) => this.#open(socket),
      (error) => this.#fail(error),
    );
  }

  get url() {
    return this.#server === null ? null : this.#server.url;
  }

  get protocol() {
    return this.#server === null ? "" : this.#server.protocol;
  }

  get extensions() {
    return this.#server === null ? "" : this.#server.extensions;
  }

  get readyState() {
    return this.#state;
  }

  get bufferedAmount() {
    return (this.#peer?.buffered ?? 0) + this.#unsent;
  }

  get binaryType() {
    return this.#binaryType;
  }

  set binaryType(value) {
    this.#binaryType; // a brand check before anything else
    const type = `${value}`;
    if (type === "blob" || type === "arraybuffer") this.#binaryType = type;
  }

  /** Starts to deliver messages, beginning with those already received. */
  accept(options = undefined) {
    if (this.#connecting !== null) throw new TypeError("Websockets obtained from the 'new WebSocket()' constructor cannot call accept().");
    if (this.#taken !== null) throw new TypeError("Can't accept() a WebSocket that was already used in a Response.");
    if (this.#peer.isHibernatable) throw new TypeError("Can't accept() WebSocket after enabling hibernation.");
    if (heldBehind(this) !== null) throw new TypeError("Can't accept() this WebSocket: its pair hibernates, so return it in a Response.");
    if (this.#accepted) return;
    this.#peer.start?.({ hear: (item) => this.#hear(item) });
    this.#accepted = true;
    this.#isHalfOpen = !!options?.allowHalfOpen;
    const waiting = this.#waiting;
    this.#waiting = null;
    // Listeners are usually added right after accept(), so received messages are delivered in a microtask.
    if (waiting !== null) queueMicrotask(() => waiting.forEach((item) => this.#hear(item)));
  }

  /** https://websockets.spec.whatwg.org/#dom-websocket-send */
  send(data) {
    requireArguments(arguments.length, 1, "WebSocket.send", "ArrayBuffer or ArrayBufferView or string");
    if (this.#state === CONNECTING) throw new DOMException("The WebSocket is still connecting.", "InvalidStateError");
    this.#requireUse("send()");
    const isOver = this.#closeSent || this.#state >= CLOSING;
    if (isOver && this.#connecting === null) throw new TypeError("Can't call WebSocket send() after close().");
    const [kind, bytes] = encode(data);
    if (isOver) this.#unsent += bytes.length;
    else this.#peer.send(kind, bytes);
  }

  /** https://websockets.spec.whatwg.org/#dom-websocket-close */
  close(code = undefined, reason = undefined) {
    const number = code === undefined ? NO_STATUS : Math.min(Math.max(toClampedLong(code), 0), 65535);
    const text = reason === undefined ? "" : toUSVString(reason);
    const isAllowed = number === 1000 || (number >= 3000 && number <= 4999) || (this.#connecting === null && isOfServers(number));
    if (code !== undefined && !isAllowed) throw new DOMException(`Invalid WebSocket close code: ${number}.`, "InvalidAccessError");
    if (hasReasonLimit && encodeText(text).length > 123) throw new DOMException("WebSocket close reason must not be longer than 123 bytes when UTF-8 encoded.", "SyntaxError");
    if (text !== "" && code === undefined) throw new DOMException("If you specify a WebSocket close reason, you must also specify a code.", "InvalidAccessError");
    this.#requireUse("close()");
    if (this.#closeSent || this.#state === CLOSED) return;
    if (this.#state === CONNECTING) {
      this.#state = CLOSING;
      this.#connecting.abort(new Error("WebSocket is closed before the connection is established."));
      return;
    }
    this.#closeSent = true;
    this.#peer.close(number, text);
    this.#state = this.#state === CLOSING ? CLOSED : CLOSING; // if half open, the other side has closed before
  }

  /** https://developers.cloudflare.com/durable-objects/api/websockets/: keeps a value with the socket, also while it hibernates. */
  serializeAttachment(value) {
    requireArguments(arguments.length, 1, "WebSocket.serializeAttachment");
    const { bytes } = serialize(value);
    if (bytes.length > MAX_ATTACHMENT) {
      throw new Error(
        `A WebSocket 'attachment' cannot be larger than ${MAX_ATTACHMENT} bytes.'attachment' was ${bytes.length} bytes.`,
      );
    }
    if (this.#peer?.isHibernatable) this.#peer.attach(bytes);
    else this.#attachment = bytes;
  }

  deserializeAttachment() {
    const bytes = this.#peer?.isHibernatable ? this.#peer.attachment : this.#attachment;
    return bytes === null ? null : deserialize(bytes);
  }

  #requireUse(what) {
    if (this.#taken !== null) throw new TypeError(`Can't call WebSocket ${what}: it was used in a Response.`);
    if (!this.#accepted) {
      const before = what === "send()" ? "sending messages" : `calling ${what}`;
      throw new TypeError(`You must call one of accept() or state.acceptWebSocket() on this WebSocket before ${before}.`);
    }
  }

  /** https://websockets.spec.whatwg.org/#feedback-from-the-protocol: `socket` comes from fetch(). */
  #open(socket) {
    this.#peer = socket.#peer;
    this.#server.protocol = socket.protocol;
    this.#server.extensions = socket.extensions;
    this.#state = OPEN;
    this.#peer.start({ hear: (item) => this.#hear(item) });
    fireEvent(this, new Event("open"));
  }

  #fail(error) {
    this.#state = CLOSED;
    fireEvent(this, new ErrorEvent("error", { message: `WebSocket connection failed: ${error.message}`, error }));
    fireEvent(this, new CloseEvent("close", { code: 1006, reason: "", wasClean: false }));
  }

  // Receives { kind, bytes } for a message, { code, reason, clean } for a close.
  #hear(item) {
    if (this.#taken !== null) {
      forward(this.#taken, item, GOING_AWAY);
      return;
    }
    if (!this.#accepted) {
      (this.#waiting ??= []).push(item);
      return;
    }
    if (this.#state === CLOSED) return;
    if (item.kind === undefined) this.#end(item);
    else if (!this.#closeSent || !this.#isOfBrowser) {
      const origin = this.#server === null ? "" : this.#server.url.split("/", 3).join("/");
      fireEvent(this, new MessageEvent("message", { data: decode(item, this.#binaryType), origin }));
    }
  }

  #end({ code, reason, clean }) {
    const answer = !this.#closeSent;
    const waits = answer && clean && this.#isHalfOpen;
    this.#state = waits ? CLOSING : CLOSED;
    if (!waits) {
      this.#closeSent = true;
      if (answer && clean) this.#peer?.close(code, reason);
    }
    if (!clean && this.#server !== null) {
      fireEvent(this, new ErrorEvent("error", { message: `WebSocket connection lost${reason === "" ? "" : `: ${reason}`}` }));
    }
    fireEvent(this, new CloseEvent("close", { code, reason: clean ? reason : "", wasClean: clean }));
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
    // A socket from fetch(): `port` leads to the server.
    createClientSocket = (port, server) => {
      const socket = new this(INTERNAL);
      socket.#peer = port;
      socket.#server = server;
      return socket;
    };
    linkTo = (socket, peer) => {
      socket.#peer = peer;
    };
    hear = (socket, item) => socket.#hear(item);
    checkHibernatable = (socket) => {
      if (socket.#accepted) throw new Error("Cannot call `acceptWebSocket()` if the WebSocket was already accepted via `accept()`");
      const end = socket.#peer instanceof LocalPeer ? socket.#peer.end : null;
      if (end === null || socket.#taken !== null || end.#accepted || end.#taken !== null) {
        throw new Error(
          "Cannot call `acceptWebSocket()` on this WebSocket because its pair has already been accepted or used in a Response.",
        );
      }
    };
    // Makes a socket hibernatable: from now on `held` is its peer. Returns its attachment.
    acceptHibernatable = (socket, held) => {
      socket.#accepted = true;
      socket.#peer = held;
      return socket.#attachment;
    };
    wakeHibernatable = (held) => {
      const socket = new this(INTERNAL);
      socket.#accepted = true;
      socket.#peer = held;
      socket.#closeSent = held.hasClosed;
      if (held.hasClosed) socket.#state = CLOSING;
      return socket;
    };
    // The client has closed, or is gone. If it `isAnswered`, nothing more can be sent.
    endHibernatable = (socket, isAnswered) => {
      socket.#closeSent ||= isAnswered;
      socket.#state = socket.#closeSent ? CLOSED : CLOSING;
    };
    heldOf = (socket) => (isWebSocket(socket) && socket.#peer?.isHibernatable ? socket.#peer : null);
    // What the other end of a pair hibernates in; null if it does not.
    heldBehind = (socket) => (socket.#peer instanceof LocalPeer ? heldOf(socket.#peer.end) : null);
    // Takes the end that a Response sends to the client. `makePort(listener)` makes the port to the client. If the other end
    // hibernates, there is none: the result has connect(call), after which Python connects the two.
    takeClient = (socket, makePort) => {
      if (socket.#accepted || socket.#taken !== null) throw new TypeError("Can't return a WebSocket in a Response after calling accept().");
      const peer = socket.#peer;
      const far = heldBehind(socket) ?? (peer.isHeld ? peer : null);
      if (far !== null) {
        socket.#taken = GONE;
        return far;
      }
      if (peer instanceof LocalPeer) {
        const server = peer.end;
        // Items already on their way come through this socket first. Later ones go directly to the port.
        socket.#taken = makePort({ hear: (item) => hear(server, item) });
        queueMicrotask(() => linkTo(server, socket.#taken));
        for (const item of socket.#waiting?.splice(0) ?? []) socket.#hear(item);
        return null;
      }
      // The peer is a server: forward in both directions, each as fast as its receiver reads.
      const port = makePort({ hear: (item) => forward(peer, item, GOING_AWAY), ready: () => peer.ready() });
      socket.#taken = port;
      peer.start({ hear: (item) => forward(port, item, BAD_GATEWAY), ready: () => port.ready() });
      return null;
    };
  }
}

defineInterface(WebSocket, { name: "WebSocket" });
defineConstants(WebSocket, { CONNECTING, OPEN, CLOSING, CLOSED });
// Cloudflare's older names.
defineConstants(WebSocket, {
  READY_STATE_CONNECTING: CONNECTING, READY_STATE_OPEN: OPEN, READY_STATE_CLOSING: CLOSING, READY_STATE_CLOSED: CLOSED,
});

/** Forwards an item to a port. `lost` is the close code if the sender disconnected without a close. */
function forward(port, item, lost) {
  if (item.kind !== undefined) port.send(item.kind, item.bytes);
  else if (item.clean) port.close(item.code, item.reason);
  else port.close(lost, "");
}

/** The other half of a pair as a peer. Each item arrives in its own microtask. */
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

  /** Cloudflare's extension: `const [client, server] = new WebSocketPair()`. */
  *[Symbol.iterator]() {
    yield this[0];
    yield this[1];
  }
}

defineInterface(WebSocketPair);
