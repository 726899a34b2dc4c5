// Keys and values of an object: rows of the table _cf_KV in its database. Both APIs of keys, ctx.storage.get() and
// ctx.storage.kv.get(), read and write the same rows.
import { deserialize, serialize } from "../dom/clone.js";
import { native } from "../internal/native.js";
import { illegalConstructor, requireArguments } from "../internal/webidl.js";
import { runInternal } from "./sql.js";

const MOST_BYTES = 2 * 1024 * 1024; // of a key and its value
const OURS = Symbol("ours"); // only this module makes these objects

/** UTF-8 bytes of a string. */
export function sizeOf(text) {
  let size = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x800 && !(code >= 0xdc00 && code <= 0xdfff && i > 0 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800)) size += 2;
    else if (code >= 0x80 && code < 0x800) size += 1;
  }
  return size;
}

/** The first string that sorts behind all strings with this prefix, in the order of UTF-8 bytes; undefined if there is none. */
function behindPrefix(prefix) {
  const points = Array.from(prefix.toWellFormed());
  while (points.length > 0) {
    const point = points.pop().codePointAt(0);
    if (point === 0x10ffff) continue;
    return points.join("") + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1);
  }
  return undefined;
}

/** `>` and `<` of strings compare UTF-16: characters beyond U+FFFF would come before U+E000. */
export function compareBytes(one, other) {
  const length = Math.min(one.length, other.length);
  for (let i = 0; i < length; i++) {
    const a = one.charCodeAt(i);
    const b = other.charCodeAt(i);
    if (a === b) continue;
    const rank = (code) => (code >= 0xe000 ? code - 0x2000 : code >= 0xd800 ? code + 0x2000 : code);
    return rank(a) - rank(b);
  }
  return one.length - other.length;
}

function toLimit(limit) {
  if (limit === undefined) return undefined;
  const number = Math.trunc(Number(limit));
  if (!(number > 0)) throw new TypeError("List limit must be positive.");
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** The options of list(), checked. */
export function toRange(options) {
  const { start, startAfter, end, prefix, reverse, limit } = options ?? {};
  if (start !== undefined && startAfter !== undefined) throw new TypeError("list() cannot be called with both start and startAfter values.");
  const text = (value) => (value === undefined || value === null ? undefined : `${value}`.toWellFormed());
  return { start: text(start), startAfter: text(startAfter), end: text(end), prefix: text(prefix) ?? "", reverse: Boolean(reverse), limit: toLimit(limit) };
}

/** The rows of _cf_KV. */
export class Keys {
  #slot;
  #exists = false; // the table; it is made by the first write

  constructor(slot) {
    this.#slot = slot;
  }

  #hasTable() {
    this.#exists ||= runInternal(this.#slot, "SELECT 1 FROM sqlite_schema WHERE name = '_cf_KV'").next() !== undefined;
    return this.#exists;
  }

  /** After a roll-back or deleteAll() the table may be gone. */
  forget() {
    this.#exists = false;
  }

  get(key) {
    if (!this.#hasTable()) return undefined;
    const row = runInternal(this.#slot, "SELECT value FROM _cf_KV WHERE key = ?", key).rest()[0];
    return row === undefined ? undefined : deserialize(new Uint8Array(row[0]));
  }

  put(key, bytes) {
    if (sizeOf(key) + bytes.length > MOST_BYTES) throw new Error("string or blob too big: SQLITE_TOOBIG");
    if (!this.#hasTable()) {
      runInternal(this.#slot, "CREATE TABLE _cf_KV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID");
      this.#exists = true;
    }
    runInternal(this.#slot, "INSERT INTO _cf_KV VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, bytes);
  }

  delete(key) {
    if (!this.#hasTable()) return false;
    return runInternal(this.#slot, "DELETE FROM _cf_KV WHERE key = ? RETURNING 1", key).rest().length > 0;
  }

  /** The rows of a range, as a cursor; undefined if there are none. */
  list({ start, startAfter, end, prefix, reverse, limit }) {
    if (!this.#hasTable()) return undefined;
    const conditions = [];
    const binds = [];
    const where = (condition, value) => {
      if (value === undefined) return;
      conditions.push(condition);
      binds.push(value);
    };
    where("key >= ?", start);
    where("key > ?", startAfter);
    where("key < ?", end);
    if (prefix !== "") {
      where("key >= ?", prefix);
      where("key < ?", behindPrefix(prefix));
    }
    const sql = `SELECT key, value FROM _cf_KV${conditions.length > 0 ? ` WHERE ${conditions.join(" AND ")}` : ""} ORDER BY key${reverse ? " DESC" : ""}`;
    if (limit === undefined) return runInternal(this.#slot, sql, ...binds);
    return runInternal(this.#slot, `${sql} LIMIT ?`, ...binds, limit);
  }
}

export function readValue(bytes) {
  return deserialize(new Uint8Array(bytes));
}

/** A value as it is stored. */
export function writeValue(value) {
  return serialize(value).bytes;
}

const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

class ListIterator {
  #rows;
  #isCurrent;

  constructor(token, rows, isCurrent) {
    if (token !== OURS) illegalConstructor();
    this.#rows = rows;
    this.#isCurrent = isCurrent;
  }

  next() {
    if (!this.#isCurrent(this)) {
      throw new Error("kv.list() iterator was invalidated because a new call to kv.list() was started. Only one kv.list() iterator can exist at a time.");
    }
    const row = this.#rows?.next();
    return row === undefined ? { done: true, value: undefined } : { done: false, value: [row[0], readValue(row[1])] };
  }
}
Object.setPrototypeOf(ListIterator.prototype, IteratorPrototype);

/** ctx.storage.kv */
export class SyncKvStorage {
  #keys;
  #iterator = null;

  constructor(token, keys) {
    if (token !== OURS) illegalConstructor();
    this.#keys = keys;
  }

  get(key) {
    requireArguments(arguments.length, 1, "get");
    return this.#keys.get(`${key}`);
  }

  put(key, value) {
    requireArguments(arguments.length, 2, "put");
    this.#keys.put(`${key}`, writeValue(value));
  }

  delete(key) {
    requireArguments(arguments.length, 1, "delete");
    return this.#keys.delete(`${key}`);
  }

  list(options = undefined) {
    const rows = this.#keys.list(toRange(options));
    this.#iterator = new ListIterator(OURS, rows, (iterator) => iterator === this.#iterator);
    return this.#iterator;
  }

  get [Symbol.toStringTag]() {
    return "SyncKvStorage";
  }
}

export function makeKv(keys) {
  return new SyncKvStorage(OURS, keys);
}

/** The time of the worker, for alarms in the past. */
export const now = () => native.now();
