// The name of an object that has an alarm: it is stored with the alarm, because nobody names the object when the alarm comes.
import { runInternal } from "./sql.js";

const run = (slot, sql, ...binds) => runInternal({ open: () => slot }, sql, ...binds);

const NAME = 1; // its key

function hasTable(slot) {
  return run(slot, "SELECT 1 FROM sqlite_schema WHERE name = '_cf_METADATA'").next() !== undefined;
}

export function storedName(slot) {
  if (!hasTable(slot)) return undefined;
  return run(slot, "SELECT value FROM _cf_METADATA WHERE key = ?", NAME).rest()[0]?.[0];
}

/** Part of the transaction that sets the alarm. */
export function storeName(slot, name) {
  if (name === undefined || storedName(slot) === name) return;
  if (!hasTable(slot)) run(slot, "CREATE TABLE _cf_METADATA (key INTEGER PRIMARY KEY, value BLOB)");
  run(slot, "INSERT OR REPLACE INTO _cf_METADATA (key, value) VALUES (?, ?)", NAME, name);
}
