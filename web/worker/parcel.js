// Serializes values that travel between workers. V8's structured clone writes most of a value; this file adds platform objects
// (platform_parts.js) and stubs. Stubs of objects and entry points travel as passes (rpc/passes.js). A small body is sent as bytes after the value. A larger body or a stream goes through a pipe.
//
// Most values hold neither. They are sent as V8 writes them, beginning with 0xff. The others are
//
//     u8 zero | u32 length, the value | u32 length, JSON of the platform objects and stubs | their bytes
//
// V8 refuses functions and proxies without asking, and stubs are proxies. A value with any of them is copied first, with a
// placeholder for each.
import { deserialize } from "../dom/clone.js";
import { native } from "../internal/native.js";
import { interfaceOf } from "../internal/platform.js";
import { decodeText, encodeText } from "../internal/text.js";
import { cloneError, notSerializable } from "../rpc/errors.js";
import { LocalCap } from "../rpc/local.js";
import { isFetcher, PassedStub, passOf } from "../rpc/passes.js";
import { Placeholder } from "../rpc/placeholder.js";
import { handleOf, RpcTarget, StubHandle } from "../rpc/stubs.js";
import { describePart, makePart, partOf } from "./platform_parts.js";
import { describeSent } from "./thrown.js";

const MOST_BYTES = 32 * 1024 * 1024;
const NONE = Object.freeze([]);
const PLAIN = 0xff; // the first byte of a value without platform objects
const HOSTS = new Uint8Array(1); // the first byte of a value with platform objects
const EMPTY = new Uint8Array(0);

function nameOf(object) {
  try {
    const name = object.constructor?.name;
    return typeof name === "string" && name !== "" ? name : "Object";
  } catch {
    return "Object";
  }
}

/** One value on its way out. */
class Writing {
  #session;
  #parts = []; // { facts, take } of each platform object and stub, in V8's order
  #refusedByV8 = false;
  #copies = new Map(); // object -> its copy or placeholder
  #value;
  root = undefined; // the capability that the value itself is
  handles = []; // of the stubs in the value
  caps = 0;

  constructor(value, session) {
    this.#value = value;
    this.#session = session;
  }

  /** V8's bytes of the value. */
  serialize(value) {
    const makeError = (message) => {
      this.#refusedByV8 = true;
      return cloneError(message);
    };
    return native.serialize(value, makeError, (object) => this.#describe(object), true)[0];
  }

  get parts() {
    return this.#parts;
  }

  /** Whether V8 refused a part of the value that a copy may replace. */
  get isRefused() {
    return this.#refusedByV8;
  }

  #describe(object) {
    const part = this.#partFor(object);
    if (part !== undefined) this.#parts.push(part);
    return part;
  }

  #partFor(object) {
    if (object instanceof Placeholder) return this.#stub(object.cap);
    if (object instanceof PassedStub) return { facts: { kind: "fetcher", pass: object.pass }, take: null };
    if (object instanceof RpcTarget) {
      const cap = new LocalCap(object);
      if (object === this.#value) this.root = cap;
      return this.#stub(cap);
    }
    const isPlatform = interfaceOf(object) !== undefined;
    if (!isPlatform && object instanceof Error) {
      const facts = describeSent(object);
      return facts === undefined ? undefined : { facts: { kind: "error", ...facts }, take: null }; // V8 writes one without own properties
    }
    const part = isPlatform ? describePart(object, this.#session) : undefined;
    if (part === undefined) throw notSerializable(nameOf(object));
    return part;
  }

  #stub(cap) {
    this.caps++;
    return { facts: { kind: "stub", ...this.#session.capOut(cap) }, take: null };
  }

  /** Takes back what was exported for a value that is not sent. */
  undo() {
    for (const { facts } of this.#parts) if (facts.kind === "stub") this.#session.undo(facts);
    this.#parts = [];
    this.caps = 0;
  }

  /** A copy of the value in which every function, stub and proxy is a placeholder. */
  copy(value) {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return value;
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    if (isFetcher(value)) return this.#keep(value, new PassedStub(passOf(value), value));
    const cap = this.capOf(value);
    if (cap !== undefined) return this.#keep(value, new Placeholder(cap));
    if (Array.isArray(value)) return this.#fill(value, this.#keep(value, new Array(value.length)));
    if (value instanceof Map) {
      const map = this.#keep(value, new Map());
      for (const [key, item] of value) map.set(this.copy(key), this.copy(item));
      return map;
    }
    if (value instanceof Set) {
      const set = this.#keep(value, new Set());
      for (const item of value) set.add(this.copy(item));
      return set;
    }
    return Object.getPrototypeOf(value) === Object.prototype ? this.#fill(value, this.#keep(value, {})) : value;
  }

  #keep(value, copy) {
    this.#copies.set(value, copy);
    return copy;
  }

  #fill(from, to) {
    for (const key of Object.keys(from)) {
      Object.defineProperty(to, key, { value: this.copy(from[key]), writable: true, enumerable: true, configurable: true });
    }
    return to;
  }

  /** The capability for what is passed by reference and V8 would refuse; undefined for everything else. */
  capOf(value) {
    const handle = handleOf(value);
    if (handle instanceof StubHandle) {
      const cap = handle.live();
      this.handles.push(handle);
      return cap;
    }
    if (handle !== undefined) throw notSerializable(handle.Class.name);
    if (typeof value === "function") return new LocalCap(value);
    if (!native.isProxy(value)) return undefined;
    if (value instanceof RpcTarget) return new LocalCap(value);
    throw notSerializable(nameOf(value));
  }
}

export const isPrimitive = (value) => (typeof value !== "object" || value === null) && typeof value !== "function" && typeof value !== "symbol";

/** Whether a value is a primitive, or a short list of them, such as the arguments of most calls. */
function isSimple(value) {
  if (isPrimitive(value)) return true;
  return Array.isArray(value) && !native.isProxy(value) && value.length <= 8 && Object.keys(value).length === value.length && value.every(isPrimitive);
}

function writeSimple(value) {
  const [bytes] = native.serialize(value, cloneError, notSerializable);
  checkSize(bytes.length);
  return { bytes, pipes: NONE, sent: NONE, caps: 0, copy: undefined, root: undefined };
}

const needsCopy = (value) => typeof value === "function" || (typeof value === "object" && value !== null && native.isProxy(value));

/**
 * A value as { bytes, pipes, sent, caps, copy, root }: `pipes` are the names of the pipes for its streams, `sent` are promises that
 * resolve when each stream is sent, `caps` counts the stubs in it, `copy` is what was serialized in its place, `root` the
 * capability if the value itself is one. With `moves` the stubs in it are disposed here.
 */
export function writeValue(value, session, moves) {
  if (isSimple(value)) return writeSimple(value);
  const writing = new Writing(value, session);
  try {
    let bytes;
    let copy = undefined;
    const isCopied = needsCopy(value) || (Array.isArray(value) && value.some(needsCopy));
    if (!isCopied) bytes = tryPlain(writing, value);
    if (bytes === undefined) {
      copy = writing.copy(value);
      bytes = writing.serialize(copy);
    }
    const { parts, caps, handles } = writing;
    const root = copy instanceof Placeholder ? copy.cap : writing.root;
    const written = parts.length > 0 ? writeParts(bytes, parts) : { bytes, pipes: NONE, sent: NONE };
    checkSize(written.bytes.length);
    if (moves) for (const handle of handles) handle.dispose();
    return { bytes: written.bytes, pipes: written.pipes, sent: written.sent, caps, copy, root };
  } catch (error) {
    writing.undo();
    throw error;
  }
}

/** V8's bytes of a value; undefined if V8 refused what a copy may replace. */
function tryPlain(writing, value) {
  try {
    return writing.serialize(value);
  } catch (error) {
    if (!writing.isRefused) throw error;
    writing.undo();
    return undefined;
  }
}

function checkSize(size) {
  if (size > MOST_BYTES) {
    throw new Error(`Serialized RPC arguments or return values are limited to 32MiB, but the size of this value was: ${size} bytes.`);
  }
  return size;
}

function writeParts(bytes, parts) {
  const pipes = [];
  const sent = [];
  const facts = [];
  const bodies = [];
  for (const part of parts) {
    const { form, bytes: body = EMPTY, begin } = part.take === null ? { form: "none" } : partOf(part.take());
    const fact = { ...part.facts, form, size: body.length };
    if (begin !== undefined) {
      const sending = begin();
      fact.pipe = sending.pipe;
      pipes.push(sending.pipe);
      if (!part.isQuiet) sent.push(sending.sent);
    }
    bodies.push(body);
    facts.push(fact);
  }
  const text = encodeText(JSON.stringify(facts));
  return { bytes: concat([HOSTS, lengthOf(bytes), bytes, lengthOf(text), text, ...bodies]), pipes, sent };
}

function concat(parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Uint8Array(checkSize(size));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function lengthOf({ length }) {
  return new Uint8Array(new Uint32Array([length]).buffer);
}

const nothing = () => {};

/** Whether a serialized value has neither platform objects nor stubs. */
export function isPlain(whole) {
  return whole[0] === PLAIN;
}

/** What writeValue() serialized: { value, finish() }. finish() disposes the stubs in the value. */
export function readValue(whole, session) {
  if (whole[0] === PLAIN) return { value: deserialize(whole), finish: nothing, stubs: NONE };
  const view = new DataView(whole.buffer, whole.byteOffset, whole.byteLength);
  let at = HOSTS.length;
  const take = (size) => whole.subarray(at, (at += size));
  const sized = () => {
    const size = view.getUint32(at, true);
    at += 4;
    return take(size);
  };
  const bytes = sized();
  const facts = JSON.parse(decodeText(sized()));
  const stubs = [];
  const finish = () => {
    for (const stub of stubs) stub.dispose();
  };
  try {
    const parts = facts.map((fact) => {
      const body = take(fact.size);
      if (fact.kind !== "stub") return makePart(fact, body, session);
      const stub = session.capIn(fact);
      stubs.push(handleOf(stub));
      return stub;
    });
    return { value: deserialize(bytes, parts), finish, stubs };
  } catch (error) {
    finish();
    throw error;
  }
}

/** The result of a call, with [Symbol.dispose] for everything in it; `release` is called by it once. */
export function readResult(whole, session, release) {
  const { value, finish, stubs } = readValue(whole, session);
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return value;
  const handle = handleOf(value);
  if (handle !== undefined) {
    handle.onDispose = release;
    return value;
  }
  let isDisposed = stubs.length === 0 && release === null;
  const dispose = isDisposed
    ? nothing
    : () => {
        if (isDisposed) return;
        isDisposed = true;
        finish();
        release?.();
      };
  Object.defineProperty(value, Symbol.dispose, { value: dispose, writable: true, configurable: true });
  return value;
}
