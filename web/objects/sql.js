// ctx.storage.sql: statements on the object's own SQLite database, and the cursors over their rows.
// https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/#sql-api
import { native } from "../internal/native.js";
import { illegalConstructor, requireArguments } from "../internal/webidl.js";

const BATCH = 256; // rows that are read at once when all are wanted
const OURS = Symbol("ours"); // only this module makes these objects

/** A value as SQLite takes it: what has no type there becomes its string. */
function toBind(value) {
  switch (typeof value) {
    case "number":
    case "string":
      return value;
    case "undefined":
      return null;
    case "object":
      if (value === null || value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value;
  }
  return `${value}`;
}

function toObject(names, row) {
  const object = {};
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (name === "__proto__") Object.defineProperty(object, name, { value: row[i], writable: true, enumerable: true, configurable: true });
    else object[name] = row[i];
  }
  return object;
}

/** The rows of one statement. Only the next one is in memory. */
class Rows {
  #slot;
  #holder; // [id in C++ or 0, rows read, rows written]
  #ahead; // rows that were read and not taken
  names;

  constructor(slot, sql, binds, internal) {
    this.#slot = slot;
    [this.#holder, this.names, this.#ahead] = native.sqlExec(slot.open(), sql, binds, internal);
  }

  get read() {
    return this.#holder[1];
  }

  get written() {
    return this.#holder[2];
  }

  /** The next row as an array, or undefined. The one after it is read as well, as workerd does: counters and errors show it. */
  next() {
    const row = this.#ahead.shift();
    if (this.#ahead.length === 0 && this.#holder[0] !== 0) this.#ahead = native.sqlRows(this.#slot.open(), this.#holder, 1);
    return row;
  }

  /** All other rows. */
  rest() {
    let rows = this.#ahead;
    this.#ahead = [];
    while (this.#holder[0] !== 0) {
      const more = native.sqlRows(this.#slot.open(), this.#holder, BATCH);
      rows = rows.length === 0 ? more : rows.concat(more);
    }
    return rows;
  }
}

/** Runs a statement of the platform, which may use its own tables. */
export function runInternal(slot, sql, ...binds) {
  return new Rows(slot, sql, binds, true);
}

const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

/** The iterator of raw(). */
class RawIterator {
  #rows;

  constructor(token, rows) {
    if (token !== OURS) illegalConstructor();
    this.#rows = rows;
  }

  next() {
    const value = this.#rows.next();
    return { done: value === undefined, value };
  }

  toArray() {
    return this.#rows.rest();
  }

  get [Symbol.toStringTag]() {
    return "Iterator";
  }
}
Object.setPrototypeOf(RawIterator.prototype, IteratorPrototype);

export class SqlStorageCursor {
  #rows;

  constructor(token, rows) {
    if (token !== OURS) illegalConstructor();
    this.#rows = rows;
  }

  next() {
    const row = this.#rows.next();
    return row === undefined ? { done: true, value: undefined } : { done: false, value: toObject(this.#rows.names, row) };
  }

  [Symbol.iterator]() {
    return this;
  }

  toArray() {
    const rows = this.#rows.rest();
    const { names } = this.#rows;
    for (let i = 0; i < rows.length; i++) rows[i] = toObject(names, rows[i]);
    return rows;
  }

  one() {
    const row = this.#rows.next();
    if (row === undefined) throw new Error("Expected exactly one result from SQL query, but got no results.");
    if (this.#rows.next() !== undefined) throw new Error("Expected exactly one result from SQL query, but got multiple results.");
    return toObject(this.#rows.names, row);
  }

  raw() {
    return new RawIterator(OURS, this.#rows);
  }

  get columnNames() {
    return [...this.#rows.names];
  }

  get rowsRead() {
    return this.#rows.read;
  }

  get rowsWritten() {
    return this.#rows.written;
  }

  get [Symbol.toStringTag]() {
    return "SqlStorageCursor";
  }
}

export class SqlStorage {
  #slot;

  constructor(token, slot) {
    if (token !== OURS) illegalConstructor();
    this.#slot = slot;
  }

  exec(query, ...binds) {
    requireArguments(arguments.length, 1, "exec");
    const sql = `${query}`;
    for (let i = 0; i < binds.length; i++) binds[i] = toBind(binds[i]);
    return new SqlStorageCursor(OURS, new Rows(this.#slot, sql, binds, false));
  }

  get databaseSize() {
    return native.databaseSize(this.#slot.open());
  }

  get Cursor() {
    return SqlStorageCursor;
  }

  get [Symbol.toStringTag]() {
    return "SqlStorage";
  }
}

export function makeSql(slot) {
  return new SqlStorage(OURS, slot);
}
