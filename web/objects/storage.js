// ctx.storage: what an object keeps. Everything is in one SQLite database in the engine, so the promises of the API below are
// resolved at once; they are promises because the API is older than SQLite in it.
// https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/
import { bookmarkForTime, currentBookmark, restoreBookmark } from "#bindings/object_history/object_history.js";
import { native } from "../internal/native.js";
import { illegalConstructor, requireArguments } from "../internal/webidl.js";
import { isOn } from "../worker/compatibility.js";
import { compareBytes, Keys, makeKv, readValue, toRange } from "./keys.js";
import { limitsOf } from "./limits.js";
import { makeSql } from "./sql.js";

const OURS = Symbol("ours"); // only this module makes these objects
const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;
const NO_SQL =
  "SQL is not enabled for this Durable Object class. To enable it, change `new_classes` to `new_sqlite_classes` in the migration that makes the class. A class that exists cannot be changed.";
const NO_KV =
  "The storage.kv (synchronous KV) API is only available for SQLite-backed Durable Objects, but this class was made with `new_classes` and not with `new_sqlite_classes`.";
const PAIRS =
  "put() may only be called with a single key-value pair and optional options as put(key, value, options) or with multiple key-value pairs and optional options as put(entries, options)";

/** The number of an open database. `open()` throws once its object has ended. */
class Slot {
  #number;
  #reason = null;

  constructor(number) {
    this.#number = number;
  }

  open() {
    if (this.#reason !== null) throw this.#reason.error;
    return this.#number;
  }

  close(error) {
    this.#reason ??= { error };
  }
}

/** A promise of what `work` returns. Like the methods of the API, it throws for wrong arguments at once, and rejects for all else. */
function soon(work) {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}

const byBytes = (keys) => [...new Set(keys)].sort(compareBytes);

/** The operations that DurableObjectStorage and DurableObjectTransaction share. */
class Operations {
  #slot;
  #keys;
  #limits;
  #hasAlarmHandler;
  #storeName;

  constructor(slot, keys, limits, hasAlarmHandler, storeName) {
    this.#slot = slot;
    this.#keys = keys;
    this.#limits = limits;
    this.#hasAlarmHandler = hasAlarmHandler;
    this.#storeName = storeName;
  }

  get(keys) {
    if (!Array.isArray(keys)) {
      const key = `${keys}`;
      this.#limits.key(key);
      return soon(() => this.#keys.get(key));
    }
    const wanted = keys.map((key) => `${key}`);
    this.#limits.keys(wanted);
    return soon(() => {
      const found = new Map();
      for (const key of byBytes(wanted)) {
        const value = this.#keys.get(key);
        if (value !== undefined) found.set(key, value);
      }
      return found;
    });
  }

  put(given, value, count) {
    if (typeof given !== "object" || given === null) {
      if (count < 2) throw new TypeError(PAIRS);
      if (value === undefined) throw new TypeError("put() called with undefined value.");
      const key = `${given}`;
      this.#limits.key(key);
      const bytes = this.#limits.value(key, value);
      return soon(() => this.#keys.put(key, bytes));
    }
    if (count > 1 && (typeof value !== "object" || value === null) && value !== undefined) throw new TypeError(PAIRS);
    const entries = Object.entries(given).filter(([, each]) => each !== undefined);
    this.#limits.pairs(entries);
    const rows = entries.map(([key, each]) => [key, this.#limits.valueOf(key, each)]);
    return soon(() => {
      for (const [key, bytes] of rows) this.#keys.put(key, bytes);
    });
  }

  delete(keys) {
    if (!Array.isArray(keys)) {
      const key = `${keys}`;
      this.#limits.key(key);
      return soon(() => this.#keys.delete(key));
    }
    const wanted = keys.map((key) => `${key}`);
    this.#limits.keys(wanted);
    return soon(() => wanted.filter((key) => this.#keys.delete(key)).length);
  }

  list(options) {
    const range = toRange(options);
    return soon(() => new Map((this.#keys.list(range)?.rest() ?? []).map(([key, value]) => [key, readValue(value)])));
  }

  getAlarm() {
    return soon(() => {
      const at = native.getAlarm(this.#slot.open());
      return at < 0 ? null : at;
    });
  }

  setAlarm(time) {
    const at = Math.trunc(time instanceof Date ? time.getTime() : Number(time));
    if (!(at > 0)) throw new TypeError("setAlarm() cannot be called with an alarm time <= 0");
    if (!this.#hasAlarmHandler()) throw new TypeError("Your Durable Object class must have an alarm() handler in order to call setAlarm()");
    return soon(() => {
      const slot = this.#slot.open();
      this.#storeName?.();
      native.setAlarm(slot, Math.max(at, Math.trunc(native.now())));
    });
  }

  deleteAlarm() {
    return soon(() => native.setAlarm(this.#slot.open(), -1));
  }
}

/** The argument of the function that transaction() calls. */
export class DurableObjectTransaction {
  #operations;
  #state = { over: false, rolledBack: false };

  constructor(token, operations, share) {
    if (token !== OURS) illegalConstructor();
    this.#operations = operations;
    share(this.#state);
  }

  #usable(name) {
    if (this.#state.rolledBack) throw new Error(`Cannot ${name}() on rolled back transaction`);
    if (this.#state.over) {
      throw new Error(`Cannot call ${name}() on transaction that has already committed: did you move \`txn\` outside of the closure?`);
    }
    return this.#operations;
  }

  get(keys) {
    requireArguments(arguments.length, 1, "get");
    return this.#usable("get").get(keys);
  }

  put(key, value) {
    requireArguments(arguments.length, 1, "put");
    return this.#usable("put").put(key, value, arguments.length);
  }

  delete(keys) {
    requireArguments(arguments.length, 1, "delete");
    return this.#usable("delete").delete(keys);
  }

  list(options = undefined) {
    return this.#usable("list").list(options);
  }

  getAlarm() {
    return this.#usable("getAlarm").getAlarm();
  }

  setAlarm(time) {
    requireArguments(arguments.length, 1, "setAlarm");
    return this.#usable("setAlarm").setAlarm(time);
  }

  deleteAlarm() {
    return this.#usable("deleteAlarm").deleteAlarm();
  }

  deleteAll() {
    throw new Error("Cannot call deleteAll() within a transaction");
  }

  rollback() {
    if (this.#state.rolledBack) return;
    this.#usable("rollback");
    this.#state.rolledBack = true;
  }

  get [Symbol.toStringTag]() {
    return "DurableObjectTransaction";
  }
}

let close; // (storage, error)
let take; // (storage)

export class DurableObjectStorage {
  #slot;
  #keys;
  #operations;
  #critical;
  #storeName;
  #sql = null;
  #kv = null;

  static {
    close = (storage, error) => storage.#slot.close(error);
    take = (storage) => native.takeAlarm(storage.#slot.open());
  }

  constructor(token, slot, { sql, critical, hasAlarmHandler, storeName }) {
    if (token !== OURS) illegalConstructor();
    this.#slot = new Slot(slot);
    this.#keys = new Keys(this.#slot);
    this.#operations = new Operations(this.#slot, this.#keys, limitsOf(sql), hasAlarmHandler, storeName);
    this.#storeName = storeName;
    this.#critical = critical;
    if (sql) {
      this.#sql = makeSql(this.#slot);
      this.#kv = makeKv(this.#keys);
    }
  }

  get sql() {
    if (this.#sql === null) throw new Error(NO_SQL);
    return this.#sql;
  }

  get kv() {
    if (this.#kv === null) throw new Error(NO_KV);
    return this.#kv;
  }

  get(keys) {
    requireArguments(arguments.length, 1, "get");
    return this.#operations.get(keys);
  }

  put(key, value) {
    requireArguments(arguments.length, 1, "put");
    return this.#operations.put(key, value, arguments.length);
  }

  delete(keys) {
    requireArguments(arguments.length, 1, "delete");
    return this.#operations.delete(keys);
  }

  list(options = undefined) {
    return this.#operations.list(options);
  }

  getAlarm() {
    return this.#operations.getAlarm();
  }

  setAlarm(time) {
    requireArguments(arguments.length, 1, "setAlarm");
    return this.#operations.setAlarm(time);
  }

  deleteAlarm() {
    return this.#operations.deleteAlarm();
  }

  deleteAll() {
    return soon(() => {
      const slot = this.#slot.open();
      native.eraseAll(slot);
      this.#keys.forget();
      if (isOn("delete_all_deletes_alarm")) native.setAlarm(slot, -1);
      else if (native.getAlarm(slot) >= 0) this.#storeName?.();
    });
  }

  /** Everything that was written before is durable. */
  sync() {
    return soon(() => native.syncStorage(this.#slot.open()));
  }

  /** The bookmark of now: writes that were made before are part of it. */
  async getCurrentBookmark() {
    this.#slot.open();
    return (await currentBookmark({})).meta.bookmark;
  }

  /** There is one copy of each object: it is always there. */
  async waitForBookmark(bookmark) {
    requireArguments(arguments.length, 1, "waitForBookmark");
    this.#slot.open();
    if (!BOOKMARK.test(`${bookmark}`)) throw new TypeError("This is not a bookmark of this object.");
  }

  /** The bookmark of the state at a time: a Date, or milliseconds. */
  async getBookmarkForTime(time) {
    requireArguments(arguments.length, 1, "getBookmarkForTime");
    this.#slot.open();
    const at = Number(time);
    if (!Number.isFinite(at)) throw new TypeError("getBookmarkForTime() needs a Date, or milliseconds since 1970.");
    return (await bookmarkForTime({ at: Math.floor(at) })).meta.bookmark;
  }

  /** The next start of the object begins with the state of this bookmark. Gives the bookmark that undoes it. */
  async onNextSessionRestoreBookmark(bookmark) {
    requireArguments(arguments.length, 1, "onNextSessionRestoreBookmark");
    this.#slot.open();
    return (await restoreBookmark({ bookmark: `${bookmark}` })).meta.bookmark;
  }

  transactionSync(closure) {
    requireArguments(arguments.length, 1, "transactionSync");
    if (this.#sql === null) throw new Error("Durable Object is not backed by SQL.");
    if (typeof closure !== "function") throw new TypeError("transactionSync: the argument is not a function.");
    this.#begin(false);
    let result;
    try {
      result = closure();
    } catch (error) {
      this.#end(false, false);
      throw error;
    }
    this.#end(false, true);
    return result;
  }

  transaction(closure) {
    requireArguments(arguments.length, 1, "transaction");
    if (typeof closure !== "function") throw new TypeError("transaction: the argument is not a function.");
    return this.#critical(() => this.#runTransaction(closure));
  }

  async #runTransaction(closure) {
    let state;
    const transaction = new DurableObjectTransaction(OURS, this.#operations, (shared) => {
      state = shared;
    });
    this.#begin(true);
    let result;
    try {
      result = await closure(transaction);
    } catch (error) {
      state.over = true;
      this.#end(true, false);
      throw error;
    }
    state.over = true;
    this.#end(true, !state.rolledBack);
    return result;
  }

  #begin(holds) {
    native.beginInner(this.#slot.open(), holds);
  }

  #end(holds, keep) {
    if (!keep) this.#keys.forget();
    native.endInner(this.#slot.open(), holds, keep);
  }

  get [Symbol.toStringTag]() {
    return "DurableObjectStorage";
  }
}

/**
 * The storage of an object whose database is open in a slot. `sql` is false for a class that was made with new_classes.
 * `critical(function)` runs a function while no other event of the object is delivered. `hasAlarmHandler()` tells whether the
 * class can take an alarm.
 */
export function makeStorage(slot, options) {
  return new DurableObjectStorage(OURS, slot, options);
}

/** The object has ended: every later use throws. */
export function closeStorage(storage, reason = new Error("Durable Object storage is no longer accessible.")) {
  close(storage, reason);
}

/** The alarm is being delivered: getAlarm() is null until the object sets another. */
export function takeAlarm(storage) {
  take(storage);
}
