// The hibernatable WebSockets of one object: https://developers.cloudflare.com/durable-objects/best-practices/websockets/
//
// The connections are in Python, with their tags and attachments, and stay there when the object is evicted. What is here
// mirrors them while the object lives. Python sends the table of sockets before the first event of an object that wakes up;
// it is read when something asks for a socket. Messages to clients leave as SOCKET frames, under credit.
import { native } from "../internal/native.js";
import { decodeText, encodeText } from "../internal/text.js";
import { Level } from "../internal/wire.gen.js";
import { closeFrame, frame } from "../sockets/frames.js";
import { acceptHibernatable, checkHibernatable, endHibernatable, wakeHibernatable } from "../sockets/websocket.js";
import { isOn } from "../worker/compatibility.js";

// What a SOCKET frame is about (protocol/wire.toml),
const ACCEPTED = 1;
const DATA = 3;
const ATTACHMENT = 4;
const AUTO_RESPONSE = 5;
const EVENT_TIMEOUT = 6;
// and a SOCKETS frame.
const TABLE = 1;
const CREDIT = 2;

// What an event is about (engine/objects/held_socket.py).
const TEXT = 1;
const BINARY = 2;
const CLOSE = 3;

const MOST_SOCKETS = 32_768;
const WINDOW = 256 * 1024; // bytes of one socket that Python has not passed on
const ROOM = 8 * 1024 * 1024; // of all sockets of an object that Python has not read
const PIECE = 64 * 1024;
const NONE = 0xffffffff;
const AUTO_REPLIES = 1; // a flag of ACCEPTED: Python answers the client's close
const SERVER_CLOSED = 1; // a flag in the table: the object has closed the socket

const NO_HANDLER = (name) => `Received ${name} event but we lack a handler. Did you remember to export a ${name}() function?`;

const mirrors = new Map(); // slot -> HibernatableSockets

/** One socket: what the WebSocket that a worker sees has as its peer. */
class HeldSocket {
  constructor(sockets, number, tags) {
    this.sockets = sockets;
    this.number = number;
    this.tags = tags;
    this.attachment = null; // bytes
    this.sentAt = -1; // when the attachment was sent last
    this.respondedAt = -1; // the last automatic response, in ms
    this.hasClosed = false; // the object has closed it
    this.webSocket = null; // made when something asks for it
    this.used = 0; // bytes that Python has not passed on
    this.queue = []; // frames that wait for credit
    this.buffered = 0; // bytes of these
  }

  get isHibernatable() {
    return true;
  }

  /** The response of `call` is the other end. */
  connect(call) {
    native.joinSocket(this.sockets.slot, this.number, call.id);
  }

  send(kind, bytes) {
    this.#push(frame(kind, bytes));
  }

  close(code, reason) {
    this.hasClosed = true;
    this.#push(closeFrame(code, reason));
  }

  #push(bytes) {
    this.queue.push(bytes);
    this.buffered += bytes.length;
    this.flush();
  }

  /** Sends what credit allows. */
  flush() {
    const { sockets, queue } = this;
    let first = 0;
    while (first < queue.length) {
      const size = Math.min(queue[first].length, PIECE, WINDOW - this.used, sockets.room);
      if (size <= 0) break;
      native.sendSocket(sockets.slot, DATA, this.number, queue[first].subarray(0, size));
      this.used += size;
      this.buffered -= size;
      sockets.room -= size;
      if (size === queue[first].length) first++;
      else queue[first] = queue[first].subarray(size);
    }
    queue.splice(0, first);
    if (queue.length > 0) sockets.waiting.add(this);
    else sockets.waiting.delete(this);
  }

  attach(bytes) {
    this.attachment = bytes;
    // Once in an entry into the engine, during which the clock stands still. Later changes follow with `sendAttachments`.
    if (this.sentAt === native.now()) this.sockets.unsent.add(this);
    else this.sendAttachment();
  }

  sendAttachment() {
    this.sentAt = native.now();
    native.sendSocket(this.sockets.slot, ATTACHMENT, this.number, this.attachment);
  }
}

export class HibernatableSockets {
  constructor(slot) {
    this.slot = slot;
    this.table = []; // parts of the table that were not read yet
    this.early = new Map(); // credit and times that came meanwhile: "what number" -> [what, number, value]
    this.held = new Map(); // number -> HeldSocket, the oldest first
    this.byTag = new Map(); // tag -> set of HeldSocket
    this.last = 0; // the highest number so far
    this.autoResponse = null; // { request, response }
    this.eventTimeout = null; // ms
    this.room = ROOM;
    this.waiting = new Set(); // those with a queue
    this.unsent = new Set(); // those whose attachment was changed since it was sent
    this.warned = new Set();
  }

  #read() {
    if (this.table.length === 0) return;
    const bytes = joined(this.table);
    this.table = [];
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.last = view.getUint32(0, true);
    this.eventTimeout = view.getUint32(4, true) || null;
    const [request, response] = [view.getUint32(8, true), view.getUint32(12, true)];
    let at = 16;
    const take = (size) => bytes.subarray(at, (at += size));
    if (request !== NONE) this.autoResponse = { request: decodeText(take(request)), response: decodeText(take(response)) };
    while (at < bytes.length) {
      const attachment = view.getUint32(at + 20, true);
      const held = new HeldSocket(this, view.getUint32(at, true), null);
      held.used = view.getUint32(at + 4, true);
      held.respondedAt = view.getFloat64(at + 8, true);
      held.hasClosed = (bytes[at + 16] & SERVER_CLOSED) !== 0;
      const size = view.getUint16(at + 18, true);
      at += 24;
      held.tags = readTags(take(size));
      if (attachment !== NONE) held.attachment = take(attachment);
      this.#add(held);
    }
    for (const facts of this.early.values()) this.#note(...facts);
    this.early.clear();
  }

  #add(held) {
    this.held.set(held.number, held);
    for (const tag of held.tags) {
      const found = this.byTag.get(tag);
      if (found === undefined) this.byTag.set(tag, new Set([held]));
      else found.add(held);
    }
  }

  accept(socket, readTags) {
    this.#read();
    checkHibernatable(socket);
    const tags = readTags();
    if (this.held.size >= MOST_SOCKETS) throw new Error(`only ${MOST_SOCKETS} websockets can be accepted on a single Durable Object instance`);
    const held = new HeldSocket(this, this.last + 1, tags);
    const flags = isOn("web_socket_auto_reply_to_close") ? AUTO_REPLIES : 0;
    held.attachment = acceptHibernatable(socket, held);
    held.webSocket = socket;
    this.last = held.number;
    this.#add(held);
    native.sendSocket(this.slot, ACCEPTED, held.number, joined([new Uint8Array([flags]), ...tags.map(writeTag)]));
    if (held.attachment !== null) held.sendAttachment();
  }

  /** The newest first; of a tag the oldest first. */
  list(tag) {
    this.#read();
    if (tag === undefined) return [...this.held.values()].reverse().map(webSocketOf);
    return [...(this.byTag.get(tag) ?? [])].map(webSocketOf);
  }

  setAutoResponse(pair) {
    this.#read();
    this.autoResponse = pair;
    const parts = [];
    if (pair !== null) {
      const request = encodeText(pair.request);
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, request.length, true);
      parts.push(length, request, encodeText(pair.response));
    }
    native.sendSocket(this.slot, AUTO_RESPONSE, 0, joined(parts));
  }

  getAutoResponse() {
    this.#read();
    return this.autoResponse;
  }

  setEventTimeout(ms) {
    this.#read();
    this.eventTimeout = ms;
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, ms ?? 0, true);
    native.sendSocket(this.slot, EVENT_TIMEOUT, 0, bytes);
  }

  getEventTimeout() {
    this.#read();
    return this.eventTimeout;
  }

  /** An event of a socket: runs the handler of the object. */
  async dispatch(instance, { socket, what, code, reason, clean }, body) {
    this.#read();
    const held = this.held.get(socket);
    if (held === undefined) return;
    if (what === TEXT) await this.#run(instance, "webSocketMessage", held, decodeText(body ?? new Uint8Array(0)));
    else if (what === BINARY) await this.#run(instance, "webSocketMessage", held, (body ?? new Uint8Array(0)).buffer);
    else await this.#end(instance, held, what, code, reason, clean);
  }

  async #end(instance, held, what, code, reason, clean) {
    const isAnswered = !clean || isOn("web_socket_auto_reply_to_close");
    endHibernatable(webSocketOf(held), isAnswered);
    try {
      if (what === CLOSE) await this.#run(instance, "webSocketClose", held, code, reason, clean);
      else await this.#run(instance, "webSocketError", held, new Error(reason));
    } finally {
      this.#remove(held);
    }
  }

  async #run(instance, name, held, ...args) {
    if (typeof instance[name] === "function") {
      await instance[name](webSocketOf(held), ...args);
    } else if (!this.warned.has(name)) {
      this.warned.add(name);
      native.log(Level.WARN, NO_HANDLER(name));
    }
  }

  #remove(held) {
    this.held.delete(held.number);
    this.waiting.delete(held);
    this.unsent.delete(held);
    for (const tag of held.tags) {
      const found = this.byTag.get(tag);
      found?.delete(held);
      if (found?.size === 0) this.byTag.delete(tag);
    }
  }

  /** A call of the object is over: Python gets attachments that changed more than once. */
  sendAttachments() {
    for (const held of this.unsent) held.sendAttachment();
    this.unsent.clear();
  }

  /** A frame of Python. */
  hear(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes[0] === TABLE) {
      this.table.push(bytes.subarray(4));
      return;
    }
    const what = bytes[0];
    const number = view.getUint32(4, true);
    const value = what === CREDIT ? view.getUint32(8, true) : view.getFloat64(8, true);
    if (this.table.length === 0) {
      this.#note(what, number, value);
      return;
    }
    // A large table takes time to read, which an event pays for.
    const key = `${what} ${number}`;
    const before = what === CREDIT ? (this.early.get(key)?.[2] ?? 0) : 0;
    this.early.set(key, [what, number, before + value]);
  }

  #note(what, number, value) {
    const held = this.held.get(number);
    if (what === CREDIT && number === 0) {
      this.room += value;
      for (const each of this.waiting) each.flush();
    } else if (held === undefined) {
      return;
    } else if (what === CREDIT) {
      held.used -= value;
      held.flush();
    } else {
      held.respondedAt = value;
    }
  }
}

function webSocketOf(held) {
  held.webSocket ??= wakeHibernatable(held);
  return held.webSocket;
}

function joined(parts) {
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A tag on the wire: u16 length, text. */
function writeTag(tag) {
  const text = encodeText(tag);
  const bytes = new Uint8Array(2 + text.length);
  new DataView(bytes.buffer).setUint16(0, text.length, true);
  bytes.set(text, 2);
  return bytes;
}

function readTags(bytes) {
  const tags = [];
  for (let at = 0; at < bytes.length; ) {
    const size = bytes[at] + 256 * bytes[at + 1];
    tags.push(decodeText(bytes.subarray(at + 2, at + 2 + size)));
    at += 2 + size;
  }
  return tags;
}

/** The sockets of the object in a slot. */
export function socketsOf(slot) {
  let found = mirrors.get(slot);
  if (found === undefined) mirrors.set(slot, (found = new HibernatableSockets(slot)));
  return found;
}

/** The object is gone. */
export function dropSockets(slot) {
  mirrors.delete(slot);
}

/** Called by the engine with a frame about the sockets of a slot. */
export function hearSockets(slot, bytes) {
  // Credit may come after the object is gone. A table always comes before it is made.
  if (bytes[0] === TABLE || mirrors.has(slot)) socketsOf(slot).hear(bytes);
}
