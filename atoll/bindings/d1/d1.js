// A D1 database as a worker sees it: https://developers.cloudflare.com/d1/worker-api/
//
// A query, or a batch, is one op. The database runs it in a Durable Object (database.mjs) and answers in JSON.
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { decodeText, encodeText } from "#web/internal/text.js";
import { illegalConstructor, requireArguments } from "#web/internal/webidl.js";

const query = defineOp("d1.query");
const OURS = Symbol("ours"); // only this module makes statements and sessions
const CONSTRAINTS = ["first-primary", "first-unconstrained"];
const NO_STATEMENT = "No SQL statements detected.";

function failure(kind, text) {
  return new Error(`${kind}: ${text}`, { cause: new Error(text) });
}

function isByte(value) {
  return typeof value === "number" && value >= 0 && value < 256;
}

/** A parameter as it is sent in JSON. */
function toParam(value) {
  switch (typeof value) {
    case "number":
    case "string":
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "object":
      if (value === null) return null;
      if (Array.isArray(value) && value.every(isByte)) return value;
      if (value instanceof ArrayBuffer) return Array.from(new Uint8Array(value));
      if (ArrayBuffer.isView(value)) return Array.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  throw failure("D1_TYPE_ERROR", `Type '${typeof value}' not supported for value '${String(value)}'`);
}

function toObject(columns, row) {
  const object = {};
  for (let i = 0; i < columns.length; i++) {
    if (columns[i] === "__proto__") Object.defineProperty(object, "__proto__", { value: row[i], writable: true, enumerable: true, configurable: true });
    else object[columns[i]] = row[i];
  }
  return object;
}

/** Results as workers get them. */
function toResult({ results: { columns, rows }, meta }, duration) {
  const results = rows.map((row) => toObject(columns, row));
  return { success: true, meta: { ...meta, duration, timings: { sql_duration_ms: duration } }, results };
}

class D1PreparedStatement {
  #send;
  #sql;
  #params;

  constructor(token, send, sql, params) {
    if (token !== OURS) illegalConstructor();
    this.#send = send;
    this.#sql = sql;
    this.#params = params;
  }

  /** A new statement: this one stays as it is. */
  bind(...values) {
    return new D1PreparedStatement(OURS, this.#send, this.#sql, values.map(toParam));
  }

  async first(column = undefined) {
    const [{ results }] = (await this.#send([[this.#sql, this.#params]])).result;
    const { columns, rows } = results;
    if (rows.length === 0) return null;
    const row = toObject(columns, rows[0]);
    if (column === undefined) return row;
    if (!Object.hasOwn(row, column)) throw new Error(`D1_COLUMN_NOTFOUND: Column not found (${column})`, { cause: new Error("Column not found") });
    return row[column];
  }

  async all() {
    const { result, duration } = await this.#send([[this.#sql, this.#params]]);
    return toResult(result[0], duration);
  }

  run() {
    return this.all();
  }

  async raw(options = undefined) {
    const [{ results }] = (await this.#send([[this.#sql, this.#params]])).result;
    return options?.columnNames ? [results.columns, ...results.rows] : results.rows;
  }

  static partsOf(statement) {
    return [statement.#sql, statement.#params];
  }
}

const { partsOf } = D1PreparedStatement;
delete D1PreparedStatement.partsOf;
defineInterface(D1PreparedStatement, { name: "D1PreparedStatement", describe: () => ({}) });

/** What databases and sessions have in common. */
class Sender {
  constructor(binding) {
    this.binding = binding;
    this.bookmark = null; // the latest
  }

  /** Runs statements in one transaction. */
  send = async (statements, kind = "D1_ERROR", where = "") => {
    if (statements.length === 0) throw failure(kind, where + NO_STATEMENT);
    const begun = Date.now();
    let meta, body;
    try {
      ({ meta, body } = await query({ binding: this.binding }, encodeText(JSON.stringify({ statements }))));
    } catch (error) {
      throw failure(kind, where + error.message);
    }
    if (meta.error !== undefined) throw failure(kind, where + meta.error);
    if (this.bookmark === null || meta.bookmark.localeCompare(this.bookmark) > 0) this.bookmark = meta.bookmark;
    return { result: JSON.parse(decodeText(body)).result, duration: Date.now() - begun };
  };

  prepare(sql) {
    return new D1PreparedStatement(OURS, this.send, `${sql}`, []);
  }

  async batch(statements) {
    const { result, duration } = await this.send(Array.from(statements, partsOf));
    return result.map((each) => toResult(each, duration));
  }
}

class D1DatabaseSession {
  #sender;

  constructor(token, sender) {
    if (token !== OURS) illegalConstructor();
    this.#sender = sender;
  }

  prepare(sql) {
    requireArguments(arguments.length, 1, "prepare");
    return this.#sender.prepare(sql);
  }

  batch(statements) {
    return this.#sender.batch(statements);
  }

  getBookmark() {
    return this.#sender.bookmark;
  }
}

defineInterface(D1DatabaseSession, { name: "D1DatabaseSession", describe: () => ({}) });

class D1Database {
  #binding;
  #sender;

  constructor(binding) {
    this.#binding = binding;
    this.#sender = new Sender(binding);
  }

  prepare(sql) {
    requireArguments(arguments.length, 1, "prepare");
    return this.#sender.prepare(sql);
  }

  batch(statements) {
    return this.#sender.batch(statements);
  }

  /** Each line has one or more statements. All of them run in one transaction. */
  async exec(text) {
    const lines = `${text}`.trim().split("\n");
    const statements = lines.filter((line) => line.trim() !== "").map((line) => [line, []]);
    const { duration } = await this.#sender.send(statements, "D1_EXEC_ERROR", `Error in line 1: ${lines[0]}: `);
    return { count: statements.length, duration };
  }

  async dump() {
    throw failure("D1_DUMP_ERROR", "dump() is not supported: `atoll d1 execute` reads a database.");
  }

  /** There is one copy of a database, so every bookmark and constraint is met. */
  withSession(constraint = undefined) {
    const wanted = constraint === undefined || constraint === null ? "" : `${constraint}`.trim();
    const sender = new Sender(this.#binding);
    if (wanted !== "" && !CONSTRAINTS.includes(wanted)) sender.bookmark = wanted;
    return new D1DatabaseSession(OURS, sender);
  }
}

defineInterface(D1Database, { name: "D1Database", describe: () => ({}) });
defineBinding("d1", D1Database);
