// The Durable Object class of D1 databases. Python loads it as a worker of its own for each tenant (ops.py): no code of the
// tenant runs beside it. It is no part of the engine's bundle, and uses only what workers have.
import { DurableObject } from "cloudflare:workers";
import { COMMENTS, dump, Loader, split } from "./dump.mjs";

const DROPS = /^\s*drop\b/i; // writes no row, and reads those of the schema
const MOST = 16 << 20; // characters of an answer
const NO_STATEMENT = "No SQL statements detected.";
const NONE_OF_SQLITE = "SQL code did not contain a statement.";

const ONLY_READS = "Only statements that read may run here: SELECT, WITH, VALUES and EXPLAIN of any but PRAGMA.";
const READS = /^(?:select|with|values|explain\s+(?:query\s+plan\s+)?(?:select|with|values|insert|update|delete|replace|create|drop|alter))\b/i;

export default {};

const PIECE = 1 << 20; // characters of an export in one answer
const PATIENCE = 30_000; // ms after which an export or import that is not continued counts as given up

export class Database extends DurableObject {
  #transfer = null; // { kind, session, … }, while an export or import is under way

  /**
   * Runs the statements of a request in one transaction, all or none.
   * {statements: [[sql, params], …]} or {script, params}: one or more statements in a text; with params only one.
   * {objects: true}: rows as objects by column. {reads: true}: refuse what could write. {most}: characters of the answer. The answer is {result: [{results, success, meta}, …]}; status 400: the text of an error.
   */
  async fetch(request) {
    const { statements, script, params = [], objects = false, reads = false, most = MOST, transfer } = await request.json();
    try {
      if (transfer !== undefined) return new Response(this.#continue(transfer));
      this.#refuseWhileBusy();
      const all = statements ?? (params.length > 0 ? [[script, params]] : [...split(script)].filter((each) => each.isWhole || each.hasCode).map(({ sql }) => [sql, []]));
      if (all.length === 0) throw new Error(NO_STATEMENT);
      if (reads) refuseWrites(all);
      const parts = this.ctx.storage.transactionSync(() => this.#runAll(all, objects, most, reads));
      return new Response(`{"result":[${parts.join("")}]}`);
    } catch (error) {
      return new Response(error.message === NONE_OF_SQLITE ? NO_STATEMENT : error.message, { status: 400 });
    }
  }

  #refuseWhileBusy() {
    if (this.#transfer === null) return;
    if (Date.now() - this.#transfer.at < PATIENCE) throw new Error(`Currently processing a long-running ${this.#transfer.kind}.`);
    if (this.#transfer.kind === "import") this.ctx.abort("The import was given up."); // Python takes back what it has done
    this.#transfer = null;
  }

  /** A step of an export: "+" and text, or "." and the last text. A step of an import: "+", or "." and its result as JSON. */
  #continue({ kind, session, begin, options, piece, scans, isLast, isOver }) {
    if (begin) {
      this.#refuseWhileBusy();
      const { sql } = this.ctx.storage;
      if (kind === "import") sql.exec("PRAGMA foreign_keys=OFF"); // rows may come before those that they refer to
      this.#transfer = { kind, session, work: kind === "export" ? dump(sql, options) : new Loader(sql) };
    }
    const transfer = this.#transfer;
    if (transfer?.session !== session) throw new Error(`The ${kind} was interrupted.`);
    transfer.at = Date.now();
    if (isOver) {
      this.ctx.storage.sql.exec("PRAGMA foreign_keys=ON");
      this.#transfer = null;
      return ".";
    }
    try {
      return kind === "export" ? this.#exportMore(transfer.work) : this.#importMore(transfer.work, piece, scans, isLast);
    } catch (error) {
      if (kind === "export") this.#transfer = null;
      throw error;
    }
  }

  #exportMore(pieces) {
    const parts = [];
    for (let size = 0; size < PIECE; ) {
      const { done, value } = pieces.next();
      if (done) {
        this.#transfer = null;
        return `.${parts.join("")}`;
      }
      parts.push(value);
      size += value.length;
    }
    return `+${parts.join("")}`;
  }

  #importMore(loader, piece, scans, isLast) {
    if (scans) {
      loader.scan(piece, isLast);
      return "+";
    }
    loader.load(piece, isLast);
    if (!isLast) return "+";
    const [broken] = this.ctx.storage.sql.exec("PRAGMA foreign_key_check").toArray();
    if (broken !== undefined) throw new Error(`FOREIGN KEY constraint failed: a row of ${broken.table} refers to one of ${broken.parent} that is not there`);
    const { queries: num_queries, read: rows_read, written: rows_written } = loader;
    return `.${JSON.stringify({ num_queries, rows_read, rows_written, size_after: this.ctx.storage.sql.databaseSize })}`;
  }

  /** Pieces of JSON. They are counted as they are made: a result that is too large must not fill the memory. */
  #runAll(statements, objects, most, reads) {
    const parts = [];
    let size = 0;
    const add = (part) => {
      size += part.length;
      if (size > most) throw new Error(`The result is larger than ${most >> 20} MB: ask for fewer rows, with LIMIT.`);
      parts.push(part);
    };
    let { total } = this.#counters();
    for (const [sql, params] of statements) {
      const cursor = this.ctx.storage.sql.exec(sql, ...params.map(toSql));
      const columns = cursor.columnNames;
      add(`${parts.length > 0 ? "," : ""}{"results":${objects ? "[" : `{"columns":${JSON.stringify(columns)},"rows":[`}`);
      let comma = "";
      for (const row of cursor.raw()) {
        for (let i = 0; i < row.length; i++) if (row[i] instanceof ArrayBuffer) row[i] = Array.from(new Uint8Array(row[i]));
        add(comma + JSON.stringify(objects ? Object.fromEntries(row.map((value, i) => [columns[i], value])) : row));
        comma = ",";
      }
      const now = this.#counters();
      const meta = this.#meta(sql, cursor, now.total - total, now.last);
      if (reads && meta.changed_db) throw new Error(ONLY_READS); // what it wrote is rolled back
      add(`${objects ? "]" : "]}"},"success":true,"meta":${JSON.stringify(meta)}}`);
      total = now.total;
    }
    return parts;
  }

  #counters() {
    return this.ctx.storage.sql.exec("SELECT total_changes() AS total, last_insert_rowid() AS last").one();
  }

  #meta(sql, cursor, changes, last) {
    return {
      served_by: "atoll",
      served_by_primary: true,
      changes,
      last_row_id: last,
      changed_db: cursor.rowsWritten > 0 || changes > 0 || (DROPS.test(sql) && cursor.rowsRead > 0),
      size_after: this.ctx.storage.sql.databaseSize,
      rows_read: cursor.rowsRead,
      rows_written: cursor.rowsWritten,
      total_attempts: 1,
    };
  }
}

/** Some PRAGMAs change how later statements run, even when they are only explained, so a reader may not use them. Words that write are found by what they do. */
function refuseWrites(statements) {
  for (const [text] of statements) {
    const parts = [...split(text)].filter((each) => each.isWhole || each.hasCode);
    if (parts.some(({ sql }) => !READS.test(sql.replace(COMMENTS, "")))) throw new Error(ONLY_READS);
  }
}

/** A parameter as it came in JSON. */
function toSql(value) {
  if (typeof value === "boolean") return value ? 1 : 0;
  return Array.isArray(value) ? new Uint8Array(value) : value;
}
