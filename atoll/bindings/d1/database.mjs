// The Durable Object class of D1 databases. Python loads it as a worker of its own for each tenant (ops.py): no code of the
// tenant runs beside it. It is no part of the engine's bundle, and uses only what workers have.
import { DurableObject } from "cloudflare:workers";

const MOST = 16 << 20; // characters of an answer
const NO_STATEMENT = "No SQL statements detected.";
const NONE_OF_SQLITE = "SQL code did not contain a statement.";

export default {};

export class Database extends DurableObject {
  /**
   * Runs the statements of a request in one transaction, all or none.
   * {statements: [[sql, params], …]} or {script, params}: one or more statements in a text; with params only one.
   * {objects: true}: rows as objects by column. {most}: characters of the answer. The answer is {result: [{results, success, meta}, …]}; status 400: the text of an error.
   */
  async fetch(request) {
    const { statements, script, params = [], objects = false, most = MOST } = await request.json();
    try {
      const all = statements ?? (params.length > 0 ? [[script, params]] : [...split(script)].map((sql) => [sql, []]));
      if (all.length === 0) throw new Error(NO_STATEMENT);
      const parts = this.ctx.storage.transactionSync(() => this.#runAll(all, objects, most));
      return new Response(`{"result":[${parts.join("")}]}`);
    } catch (error) {
      return new Response(error.message === NONE_OF_SQLITE ? NO_STATEMENT : error.message, { status: 400 });
    }
  }

  /** Pieces of JSON. They are counted as they are made: a result that is too large must not fill the memory. */
  #runAll(statements, objects, most) {
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
      add(`${objects ? "]" : "]}"},"success":true,"meta":${JSON.stringify(this.#meta(cursor, now.total - total, now.last))}}`);
      total = now.total;
    }
    return parts;
  }

  #counters() {
    return this.ctx.storage.sql.exec("SELECT total_changes() AS total, last_insert_rowid() AS last").one();
  }

  #meta(cursor, changes, last) {
    return {
      served_by: "atoll",
      served_by_primary: true,
      changes,
      last_row_id: last,
      changed_db: cursor.rowsWritten > 0 || changes > 0,
      size_after: this.ctx.storage.sql.databaseSize,
      rows_read: cursor.rowsRead,
      rows_written: cursor.rowsWritten,
      total_attempts: 1,
    };
  }
}

/** A parameter as it came in JSON. */
function toSql(value) {
  if (typeof value === "boolean") return value ? 1 : 0;
  return Array.isArray(value) ? new Uint8Array(value) : value;
}

/** The statements of a text. A ";" in quotes, comments and bodies of triggers does not end one. */
function* split(text) {
  const token = /;|--|\/\*|['"`[]|[\w$\u0080-\uffff]+/g;
  let start = 0; // of the statement
  let hasCode = false; // and not only comments
  let words = []; // the first three, in capitals
  let before = "";
  let last = ""; // ";" or a word
  const begin = (at) => {
    [start, hasCode, words, before, last] = [at, false, [], "", ""];
  };
  const isTrigger = () => words[0] === "CREATE" && (words[1] === "TRIGGER" || (/^TEMP(ORARY)?$/.test(words[1]) && words[2] === "TRIGGER"));
  let end = 0; // of the last token
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const found = match[0];
    if (text.slice(end, match.index).trim() !== "") hasCode = true;
    end = token.lastIndex;
    const closer = { "--": "\n", "/*": "*/", "[": "]", "'": "'", '"': '"', "`": "`" }[found];
    if (closer !== undefined) {
      if (closer !== "\n" && closer !== "*/") [hasCode, before, last] = [true, last, "quoted"];
      const at = text.indexOf(closer, end);
      token.lastIndex = end = at < 0 ? text.length : at + closer.length;
    } else if (found !== ";") {
      hasCode = true;
      [before, last] = [last, found.toUpperCase()];
      if (words.length < 3) words.push(last);
    } else if (isTrigger() && !(last === "END" && before === ";")) {
      [before, last] = [last, ";"];
    } else {
      if (hasCode) yield text.slice(start, end);
      begin(end);
    }
  }
  if (hasCode || text.slice(end).trim() !== "") yield text.slice(start);
}
