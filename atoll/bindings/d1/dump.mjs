// A database as SQL text, and the statements of such a text. Other SQLite programs read and write the same.
//
// Tables come with their indexes and rows, then virtual tables, views and triggers: a trigger must not run for rows that are loaded.

const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function blob(bytes) {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return `X'${text}'`;
}

/** Pieces of SQL text that make the database again. `tables`: only these; else all. */
export function* dump(sql, { tables = [], schema = true, data = true }) {
  const kinds = new Map(sql.exec("PRAGMA table_list").toArray().map((each) => [each.name, each]));
  const isOurs = (name) => /^(sqlite_|_cf_)/i.test(name) || kinds.get(name)?.type === "shadow";
  const isWanted = (name) => !isOurs(name) && (tables.length === 0 || tables.includes(name));
  for (const name of tables) if (isOurs(name) || !kinds.has(name)) throw new Error(`no such table: ${name}`);
  const all = sql.exec("SELECT type, name, tbl_name AS owner, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").toArray();
  const made = (type) => all.filter((each) => each.type === type && isWanted(each.owner));
  const isVirtual = (each) => kinds.get(each.name)?.type === "virtual";
  yield "PRAGMA defer_foreign_keys=TRUE;\n";
  for (const table of made("table").filter((each) => !isVirtual(each))) {
    if (schema) yield `${table.sql};\n`;
    if (schema) for (const index of made("index")) if (index.owner === table.name) yield `${index.sql};\n`;
    if (data) yield* rowsOf(sql, table.name, " NOT INDEXED", false);
  }
  for (const table of made("table").filter(isVirtual)) {
    if (schema) yield `${table.sql};\n`;
    if (data) yield* virtualRows(sql, table);
  }
  if (data && kinds.has("sqlite_sequence")) {
    const counted = sql.exec("SELECT name, CAST(seq AS TEXT) AS seq FROM sqlite_sequence").toArray();
    for (const { name, seq } of counted.filter((each) => isWanted(each.name))) {
      yield `DELETE FROM sqlite_sequence WHERE name=${text(name)};\nINSERT INTO sqlite_sequence(name,seq) VALUES(${text(name)},${seq});\n`;
    }
  }
  if (!schema) return;
  if (tables.length === 0) for (const view of made("view")) yield `${view.sql};\n`;
  for (const trigger of made("trigger")) yield `${trigger.sql};\n`;
}

function* virtualRows(sql, { name, sql: code }) {
  const module = /\bUSING\s+"?(\w+)/i.exec(code)?.[1].toLowerCase();
  if (module === "fts5vocab") return;
  const content = module === "fts5" ? /[(,]\s*content\s*=\s*('[^']*'|"[^"]*"|[\w.]+)/i.exec(code)?.[1] : undefined;
  if (content === undefined) {
    yield* rowsOf(sql, name, "", module === "fts5");
  } else if (content === "''" || content === '""') {
    throw new Error(`the table ${name} has no content that could be exported: it is an FTS5 table with content=''`);
  } else {
    yield `INSERT INTO ${quoted(name)}(${quoted(name)}) VALUES('rebuild');\n`;
  }
}

function* rowsOf(sql, table, how, withRowid) {
  const columns = sql.exec(`PRAGMA table_xinfo(${quoted(table)})`).toArray();
  const names = columns.filter((each) => each.hidden === 0).map((each) => quoted(each.name));
  if (withRowid) names.unshift("rowid");
  const isWhole = names.length === columns.length;
  const into = `INSERT INTO ${quoted(table)}${isWhole ? "" : `(${names.join(",")})`} VALUES(`;
  // A letter in front says which type a text was: numbers of JavaScript do not hold all integers.
  const typed = (name) => `CASE typeof(${name}) WHEN 'integer' THEN 'i'||${name} WHEN 'real' THEN 'r'||quote(${name}) WHEN 'text' THEN 't'||${name} ELSE ${name} END`;
  let number = 0;
  for (const row of sql.exec(`SELECT ${names.map(typed).join(",")} FROM ${quoted(table)}${how}`).raw()) {
    const values = row.map((value, at) => {
      if (value === null) return "NULL";
      if (typeof value !== "string") return blob(new Uint8Array(value));
      if (value[0] !== "t") return value.slice(1);
      // What SQL text or UTF-8 cannot say is written as bytes.
      if (!/[\0\ufffd]/.test(value)) return text(value.slice(1));
      const [[bytes]] = sql.exec(`SELECT CAST(${names[at]} AS BLOB) FROM ${quoted(table)}${how} LIMIT 1 OFFSET ${number}`).raw().toArray();
      return `CAST(${blob(new Uint8Array(bytes))} AS TEXT)`;
    });
    yield `${into}${values.join(",")});\n`;
    number++;
  }
}

function text(value) {
  return `'${value.replaceAll("'", "''")}'`;
}

/** The statements of a text: {sql, isWhole}. A ";" in quotes, comments and bodies of triggers does not end one. */
export function* split(text) {
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
      if (hasCode) yield { sql: text.slice(start, end), isWhole: true };
      begin(end);
    }
  }
  if (start < text.length) yield { sql: text.slice(start), isWhole: false, hasCode: hasCode || text.slice(end).trim() !== "" };
}

/** What may be before the first word of a statement. */
export const COMMENTS = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;
const LONG = 90_000; // characters of a statement that SQLite takes as it is
const LITERAL = /'(?:[^']|'')*'|"(?:[^"]|"")*"/g;
const OURS = /^(?:BEGIN(?:\s+TRANSACTION)?|COMMIT|END(?:\s+TRANSACTION)?|PRAGMA\s+foreign_keys\s*=\s*\w+)\s*;$/i;

const NAME = '("(?:[^"]|"")+"|`(?:[^`]|``)+`|\\[[^\\]]+\\]|[\\w$\\u0080-\\uffff]+)';
const PATH = `(?:${NAME}\\s*\\.\\s*)?${NAME}`;
const INDEX = new RegExp(`^CREATE\\s+(?:UNIQUE\\s+)?INDEX\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?${PATH}\\s+ON\\s+${NAME}\\s*\\(`, "i");
const TABLE = new RegExp(`^CREATE\\s+TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?${PATH}\\s*\\(`, "i");
const MOST_INDEXES = 1 << 20; // characters of their statements

const codeOf = (sql) => sql.replace(COMMENTS, "");

/** A name as SQLite compares it. */
function plain(name) {
  const quote = { '"': '"', "`": "`", "[": "]" }[name[0]];
  const inner = quote === undefined ? name : name.slice(1, -1);
  return (quote === '"' || quote === "`" ? inner.replaceAll(quote + quote, quote) : inner).toLowerCase();
}

/**
 * Runs statements of a text that comes in pieces. One statement may change 32 MB. An index of a large table is more, if it is made
 * when the rows are there. So a text may be scanned first: then its indexes are made with their tables.
 */
export class Loader {
  #sql;
  #rest = "";
  #indexes = new Map(); // table -> statements that make its indexes
  #size = 0; // of them
  #made = new Set(); // those that were run
  queries = 0;
  read = 0;
  written = 0;

  constructor(sql) {
    this.#sql = sql;
  }

  /** Notes the indexes in a text. The text comes again, to load(). */
  scan(piece, isLast) {
    this.#each(piece, isLast, (sql) => {
      const [, , , table] = INDEX.exec(codeOf(sql)) ?? [];
      if (table === undefined) return;
      this.#size += sql.length;
      if (this.#size > MOST_INDEXES) throw new Error("The indexes of this file are too many to be made with their tables: create them before the rows.");
      const known = this.#indexes.get(plain(table));
      if (known === undefined) this.#indexes.set(plain(table), [sql]);
      else known.push(sql);
    });
  }

  load(piece, isLast) {
    this.#each(piece, isLast, (sql) => this.#run(sql));
  }

  #each(piece, isLast, act) {
    const whole = this.#rest + piece;
    this.#rest = "";
    for (const { sql, isWhole, hasCode } of split(whole)) {
      if (!isWhole && !isLast) this.#rest = sql;
      else if (isWhole || hasCode) act(sql);
    }
    if (this.#rest.length > 32 << 20) throw new Error("A statement is larger than 32 MB, or a quote has no end.");
  }

  #run(sql) {
    if (OURS.test(sql.trim())) return; // the whole import is one transaction
    this.queries++;
    if (this.#made.has(sql)) return;
    this.#execute(sql);
    const [, , table] = (this.#indexes.size > 0 && TABLE.exec(codeOf(sql))) || [];
    if (table === undefined) return;
    for (const index of this.#indexes.get(plain(table)) ?? []) {
      this.#made.add(index);
      this.#execute(index);
    }
  }

  #execute(text) {
    const sql = codeOf(text);
    const binds = [];
    const code = sql.length < LONG ? sql : shorten(sql, binds);
    try {
      const cursor = this.#sql.exec(code, ...binds);
      for (const _ of cursor.raw());
      this.read += cursor.rowsRead;
      this.written += cursor.rowsWritten;
    } catch (error) {
      throw new Error(`${error.message}, in the statement: ${sql.trim().slice(0, 200)}`, { cause: error });
    }
  }
}

/** A statement whose long values are parameters: SQLite bounds its text. */
function shorten(sql, binds) {
  return sql.replace(LITERAL, (literal, at) => {
    if (literal[0] !== "'" || literal.length < 200 || binds.length >= 100) return literal;
    const isBlob = /[xX]/.test(sql[at - 1] ?? "") && !/\w/.test(sql[at - 2] ?? " ");
    binds.push(isBlob ? bytesOf(literal.slice(1, -1)) : literal.slice(1, -1).replaceAll("''", "'"));
    return isBlob ? `\0?` : "?";
  }).replaceAll(/[xX]\0\?/g, "?");
}

function bytesOf(hex) {
  const bytes = new Uint8Array(hex.length >> 1);
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(hex.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}
