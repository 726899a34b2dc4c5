// https://websockets.spec.whatwg.org/ and https://developers.cloudflare.com/workers/runtime-apis/websockets/
//
// A WebSocket stands at one end of a link. What is at the other end is its peer: the other end of a pair in the same isolate,
// a port that leads to a client (worker/socket_port.js), or one that leads to a server (client_port.js). To all of them it says
// send(kind, bytes) and close(code, reason). One that was made by `new WebSocket()` behaves as browsers have it; the others as
// Cloudflare has it: they hear nothing before accept(), and refuse to send after a close.
import { CloseEvent, MessageEvent } from "../dom/message_event.js";
import { ErrorEvent, Event } from "../dom/event.js";
import { EventTarget, fireEvent, HandlerSlot } from "../dom/event_target.js";
import { DOMException } from "../dom/exception.js";
import { Blob, blobBytes, isBlob } from "../file/blob.js";
import { defineConstants, defineInterface } from "../internal/platform.js";
import { decodeText, encodeText } from "../internal/text.js";
import { bytesOf, copyBytes, isBufferSource, requireArguments, toClampedLong, toUSVString } from "../internal/webidl.js";
import { queueMicrotask } from "../timers.js";
import { isOn } from "../worker/compatibility.js";
import { connect, readAddress, readProtocols } from "./connect.js";

const INTERNAL = Symbol("made by the platform");
const HANDLERS = ["open", "message", "close", "error"];
const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
const NO_STATUS = 1005;
const GOING_AWAY = 1001;
const BAD_GATEWAY = 1014;

export const TEXT = 1;
export const BINARY = 2;

// Set by the class for those who make and link ends.
export let createSocket;
export let createClientSocket;
export let linkTo;
export let takeClient;
export let hear;
export let isWebSocket;

export class WebSocket extends EventTarget {
  #state = OPEN;
  #accepted = false;
  #isHalfOpen = false; // a close of the other side is answered by the worker, not by us
  #taken = null; // the port that stands in its place once it went out with a Response
  #peer = null;
  #waiting = null; // what came before accept()
  #handlers = null; // of the event handler attributes
  #closeSent = false;
  #binaryType = isOn("websocket_standard_binary_type") ? "blob" : "arraybuffer";
  #server = null; // { url, protocol, extensions } of one that leads to a server
  #connecting = null; // of one made by `new WebSocket()`: what gives up the attempt
  #unsent = 0; // bytes that were given to send() after the close

  /** https://websockets.spec.whatwg.org/#dom-websocket-websocket */
  constructor(url, protocols = []) {
    super();
    if (url === INTERNAL) return;
    requireArguments(arguments.length, 1, "WebSocket constructor");
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
    return this.#server === null ? "" : this.#server.url;
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

  /** Hear from now on what comes, beginning with what has come already. */
  accept(options = undefined) {
    if (this.#connecting !== null) throw new TypeError("Websockets obtained from the 'new WebSocket()' constructor cannot call accept().");
    if (this.#taken !== null) throw new TypeError("Can't accept() a WebSocket that was already used in a Response.");
    if (this.#accepted) return;
    this.#peer.start?.({ hear: (item) => this.#hear(item) });
    this.#accepted = true;
    this.#isHalfOpen = !!options?.allowHalfOpen;
    const waiting = this.#waiting;
    this.#waiting = null;
    // Listeners are usually added right after accept(): what waits is told when the code that accepts has ended.
    if (waiting !== null) queueMicrotask(() => waiting.forEach((item) => this.#hear(item)));
  }

  /** https://websockets.spec.whatwg.org/#dom-websocket-send */
  send(data) {
    requireArguments(arguments.length, 1, "WebSocket.send");
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
    if (code !== undefined && !isAllowed) throw new DOMException(`${number} is no close code that may be sent.`, "InvalidAccessError");
    if (encodeText(text).length > 123) throw new DOMException("The reason of a close has at most 123 bytes.", "SyntaxError");
    if (text !== "" && code === undefined) throw new DOMException("A reason needs a close code.", "SyntaxError");
    this.#requireUse("close()");
    if (this.#closeSent || this.#state === CLOSED) return;
    if (this.#state === CONNECTING) {
      this.#state = CLOSING;
      this.#connecting.abort(new Error("WebSocket is closed before the connection is established."));
      return;
    }
    this.#closeSent = true;
    this.#peer.close(number, text);
    this.#state = this.#state === CLOSING ? CLOSED : CLOSING; // half open, it was the other side's turn before
  }

  #requireUse(what) {
    if (this.#taken !== null) throw new TypeError(`Can't call WebSocket ${what}: it was used in a Response.`);
    if (!this.#accepted) throw new TypeError(`You must call accept() on this WebSocket before ${what}.`);
  }

  /** https://websockets.spec.whatwg.org/#feedback-from-the-protocol: `socket` is what fetch() brought. */
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

  // What comes: { kind, bytes } of a message, { code, reason, clean } of a close.
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
    else if (!this.#closeSent) {
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
    // What fetch() brought: `port` leads to the server.
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
    // The end that goes to the client. `makePort(listener)` makes the port that leads there, whose listener hears the client.
    takeClient = (socket, makePort) => {
      if (socket.#accepted || socket.#taken !== null) throw new TypeError("Can't return a WebSocket in a Response after calling accept().");
      const peer = socket.#peer;
      if (peer instanceof LocalPeer) {
        const server = peer.end;
        // Only what is said from now on goes straight to the port: what is on its way comes through here, and first.
        socket.#taken = makePort({ hear: (item) => hear(server, item) });
        queueMicrotask(() => linkTo(server, socket.#taken));
        for (const item of socket.#waiting?.splice(0) ?? []) socket.#hear(item);
        return;
      }
      // It leads to a server: what either side says goes to the other, as fast as that takes it.
      const port = makePort({ hear: (item) => forward(peer, item, GOING_AWAY), ready: () => peer.ready() });
      socket.#taken = port;
      peer.start({ hear: (item) => forward(port, item, BAD_GATEWAY), ready: () => port.ready() });
    };
  }
}

defineInterface(WebSocket, { name: "WebSocket" });
defineConstants(WebSocket, { CONNECTING, OPEN, CLOSING, CLOSED });
// Cloudflare's older names.
defineConstants(WebSocket, {
  READY_STATE_CONNECTING: CONNECTING, READY_STATE_OPEN: OPEN, READY_STATE_CLOSING: CLOSING, READY_STATE_CLOSED: CLOSED,
});

/** Says to a port what was heard at another one; `lost` is the code for a side that is gone without a close. */
function forward(port, item, lost) {
  if (item.kind !== undefined) port.send(item.kind, item.bytes);
  else if (item.clean) port.close(item.code, item.reason);
  else port.close(lost, "");
}

/** https://www.rfc-editor.org/rfc/rfc6455#section-7.4: codes that a server may have to send. */
function isOfServers(code) {
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

function encode(data) {
  if (isBufferSource(data)) return [BINARY, copyBytes(data)];
  if (isBlob(data)) return [BINARY, bytesOf(blobBytes(data))];
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

  /** Cloudflare's: `const [client, server] = new WebSocketPair()`. */
  *[Symbol.iterator]() {
    yield this[0];
    yield this[1];
  }
}

defineInterface(WebSocketPair);
