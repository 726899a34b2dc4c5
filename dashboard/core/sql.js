// SQL that the pages write, and values as SQLite has them. Pure. Numbers are texts all the way: JavaScript would round large ones.
const MOST_CELL = 200; // characters of a text in a table
const MOST_BLOB = 24; // bytes
export const MOST_COLUMNS = 90; // SQLite takes a hundred in a result
export const MOST_EDITED = 256 << 10; // characters of a value that a form holds

export const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

/** A value, { kind: "text" | "number" | "blob" | "null", text }, as SQL. Throws with words for people. */
export function literal({ kind, text }) {
  if (kind === "null") return "NULL";
  if (kind === "text") return text.includes("\0") ? `CAST(X'${hexOfText(text)}' AS TEXT)` : `'${text.replaceAll("'", "''")}'`;
  if (kind === "blob") {
    const hex = text.replace(/\s/g, "");
    if (hex.length % 2 || /[^0-9a-f]/i.test(hex)) throw new Error("A BLOB is written in hex: two digits for each byte, as 00ff7f.");
    return `X'${hex.toUpperCase()}'`;
  }
  const number = text.trim();
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(number)) throw new Error(`“${number.slice(0, 40)}” is not a number.`);
  if (/^[+-]?\d+$/.test(number) && BigInt.asIntN(64, BigInt(number)) !== BigInt(number)) {
    throw new Error("SQLite's whole numbers have 64 bits. Write this one as a text, or with a decimal point.");
  }
  return number;
}

const hexOfText = (text) => Array.from(new TextEncoder().encode(text), (each) => each.toString(16).padStart(2, "0")).join("");

/** A cell as one text: its type, its length, and its beginning. */
const cell = (name) => {
  const c = quoted(name);
  return `CASE typeof(${c}) WHEN 'null' THEN NULL WHEN 'text' THEN 't' || length(${c}) || ':' || substr(${c}, 1, ${MOST_CELL}) WHEN 'blob' THEN 'b' || length(${c}) || ':' || hex(substr(${c}, 1, ${MOST_BLOB})) WHEN 'integer' THEN 'i:' || ${c} ELSE 'r:' || ${c} END`;
};

export function cellOf(raw) {
  if (raw === null) return { kind: "null", text: "", length: 0 };
  const end = raw.indexOf(":");
  return { kind: { t: "text", b: "blob", i: "number", r: "number" }[raw[0]], length: Number(raw.slice(1, end)), text: raw.slice(end + 1) };
}

/** A name by which SQLite gives the number of a row; "" if columns have taken all of them. */
export const rowidOf = (columns) => ["rowid", "_rowid_", "oid"].find((name) => !columns.some((each) => each.name.toLowerCase() === name)) ?? "";

/** A page of rows: after a row by its number, or after a count of rows where rows have no number. One row more than `size` says that there are more. */
export function pageOf(table, columns, rowid, size) {
  const cells = columns.slice(0, MOST_COLUMNS).map(({ name }) => cell(name));
  return rowid
    ? `SELECT CAST(${rowid} AS TEXT), ${cells.join(", ")} FROM ${quoted(table)} WHERE ${rowid} > CAST(? AS INTEGER) ORDER BY ${rowid} LIMIT ${size + 1}`
    : `SELECT NULL, ${cells.join(", ")} FROM ${quoted(table)} LIMIT ${size + 1} OFFSET CAST(? AS INTEGER)`;
}

/** One value as a whole; NULL in place of one that is too large for a form. */
export function wholeOf(table, column, rowid) {
  const c = quoted(column);
  return `SELECT typeof(${c}), CASE WHEN length(${c}) > ${MOST_EDITED} THEN NULL WHEN typeof(${c}) = 'blob' THEN hex(${c}) WHEN typeof(${c}) = 'real' THEN format('%!.17g', ${c}) WHEN typeof(${c}) = 'integer' THEN CAST(${c} AS TEXT) ELSE ${c} END FROM ${quoted(table)} WHERE ${rowid} = CAST(? AS INTEGER)`;
}

/** The statements of changes: { gone: Set of rowids, cells: Map(rowid → Map(column → value)), added: [Map(column → value)] }. */
export function statementsOf(table, rowid, { gone, cells, added }) {
  const name = quoted(table);
  const set = (values) => [...values].map(([column, value]) => `${quoted(column)} = ${literal(value)}`).join(", ");
  return [
    ...[...cells].filter(([row]) => !gone.has(row)).map(([row, values]) => `UPDATE ${name} SET ${set(values)} WHERE ${rowid} = ${row}`),
    ...[...gone].map((row) => `DELETE FROM ${name} WHERE ${rowid} = ${row}`),
    ...added.map((values) => values.size
      ? `INSERT INTO ${name} (${[...values.keys()].map(quoted).join(", ")}) VALUES (${[...values.values()].map(literal).join(", ")})`
      : `INSERT INTO ${name} DEFAULT VALUES`),
  ];
}

/** A value of an answer, as the console shows it. */
export function shownValue(value) {
  if (value === null) return "NULL";
  if (Array.isArray(value)) return `X'${value.slice(0, MOST_BLOB).map((each) => each.toString(16).padStart(2, "0")).join("")}${value.length > MOST_BLOB ? "…" : ""}' (${value.length} bytes)`;
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? `≈ ${value}` : String(value);
}
