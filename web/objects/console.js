// What operators ask of an object (`atoll objects`): what it stores, its alarm, SQL. No instance of the class is made for it.
import { native } from "../internal/native.js";
import { inspect } from "../internal/show.js";
import { readValue } from "./keys.js";
import { runInternal } from "./sql.js";

const MOST_ROWS = 10_000; // of a table that are counted
const MOST_TABLES = 1_000;
const MOST_TEXT = 2_000; // characters of a key, a value or the statement of a table
const MOST_VALUE = 64 << 10; // bytes of a value that is shown
const MOST_STATE = 512 << 10; // characters of an answer about what an object stores
const SETS = /case_sensitive_like|defer_foreign_keys|foreign_keys|ignore_check_constraints|legacy_alter_table|recursive_triggers|reverse_unordered_selects/i;
const NEEDS_WRITE = "A PRAGMA that sets something changes how the object runs its SQL.";

const run = (slot, sql, ...binds) => runInternal({ open: () => slot }, sql, ...binds);
const cut = (text) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text);
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

/** The answer to a question, as text. It is made in one step: nothing of the object runs meanwhile. */
export function answerConsole({ slot, storage, Class }, question) {
  switch (question.what) {
    case "state":
      return JSON.stringify(stateOf(slot, question));
    case "sql":
      return question.write ? storage.transactionSync(() => rowsOf(storage, question)) : readOnly(slot, storage, question);
    case "alarm":
      return JSON.stringify({ alarm: setAlarm(storage, Class, question.at) });
  }
  throw new TypeError("The question is malformed.");
}

function setAlarm(storage, Class, at) {
  if (at === null) {
    storage.deleteAlarm();
    return null;
  }
  if (typeof Class.prototype.alarm !== "function") {
    throw new TypeError("Your Durable Object class must have an alarm() handler in order to call setAlarm()");
  }
  storage.setAlarm(at);
  return at;
}

function stateOf(slot, { offset, limit }) {
  let room = MOST_STATE;
  const fits = (entry) => (room -= JSON.stringify(entry).length) > 0;
  const tables = tablesOf(slot).filter(fits);
  const keys = [];
  let next = null;
  for (const entry of keysOf(slot, offset, limit + 1)) {
    if (keys.length === limit || (keys.length > 0 && !fits(entry))) {
      next = offset + keys.length;
      break;
    }
    keys.push(entry);
  }
  const alarm = native.getAlarm(slot);
  return { bytes: native.databaseSize(slot), alarm: alarm < 0 ? null : alarm, tables, keys, next };
}

function tablesOf(slot) {
  const sql = String.raw`SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE '\_cf\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name LIMIT ?`;
  return run(slot, sql, MOST_TABLES)
    .rest()
    .map(([name, type, text]) => ({ name: cut(name), type, sql: cut(`${text}`), rows: type === "table" ? count(slot, name) : null }));
}

/** Rows of a table up to MOST_ROWS; -1 if there are more, null if it cannot be read. */
function count(slot, name) {
  try {
    const [[rows]] = run(slot, `SELECT count(*) FROM (SELECT 1 FROM ${quoted(name)} LIMIT ?)`, MOST_ROWS + 1).rest();
    return rows > MOST_ROWS ? -1 : rows;
  } catch {
    return null;
  }
}

function* keysOf(slot, offset, limit) {
  if (run(slot, "SELECT 1 FROM sqlite_schema WHERE name = '_cf_KV'").next() === undefined) return;
  const sql = "SELECT key, length(value), CASE WHEN length(value) <= ? THEN value END FROM _cf_KV ORDER BY key LIMIT ? OFFSET ?";
  const rows = run(slot, sql, MOST_VALUE, limit, offset);
  for (let row; (row = rows.next()) !== undefined; ) yield { key: cut(row[0]), bytes: row[1], value: shown(row[2]) };
}

function shown(stored) {
  if (stored === null) return null;
  try {
    return cut(inspect(readValue(stored)));
  } catch {
    return null;
  }
}

/** SQLite refuses every write meanwhile, also those of statements that were compiled before. */
function readOnly(slot, storage, question) {
  if (/pragma/i.test(question.sql) && SETS.test(question.sql) && /[=(]/.test(question.sql)) throw new Error(NEEDS_WRITE);
  storage.sql; // a class without SQL says so
  run(slot, "PRAGMA query_only = 1").rest();
  try {
    return rowsOf(storage, question);
  } finally {
    run(slot, "PRAGMA query_only = 0").rest();
  }
}

/** The rows of the last statement. They are counted as they are made: a result that is too large must not fill the memory. */
function rowsOf(storage, { sql, params, most }) {
  const cursor = storage.sql.exec(sql, ...params.map((each) => (Array.isArray(each) ? new Uint8Array(each) : each)));
  const parts = [];
  let size = 0;
  for (const row of cursor.raw()) {
    for (let i = 0; i < row.length; i++) if (row[i] instanceof ArrayBuffer) row[i] = Array.from(new Uint8Array(row[i]));
    const part = JSON.stringify(row);
    size += part.length;
    if (size > most) throw new Error(`The result is larger than ${most >> 10} KB: ask for fewer rows, with LIMIT.`);
    parts.push(part);
  }
  const { columnNames, rowsRead, rowsWritten } = cursor;
  return `{"columns":${JSON.stringify(columnNames)},"rows":[${parts.join(",")}],"rows_read":${rowsRead},"rows_written":${rowsWritten}}`;
}
