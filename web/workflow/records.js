// What an instance stores: itself, its steps with their attempts, and the events that nobody has waited for yet.
//
// Everything is in the database of its object, so a step and its result are durable together, and what the code does next leaves
// the node only once they are (engine/objects/output_gate.py).
import { deserialize, serialize } from "../dom/clone.js";

const TABLES = [
  `CREATE TABLE instance (
    one INTEGER PRIMARY KEY CHECK (one = 1), workflow TEXT NOT NULL, source TEXT NOT NULL, status TEXT NOT NULL, payload BLOB,
    created INTEGER NOT NULL, started INTEGER, ended INTEGER, paused INTEGER, output BLOB, error TEXT, message TEXT,
    keep_complete INTEGER, keep_errored INTEGER, version TEXT NOT NULL DEFAULT '', tries INTEGER NOT NULL DEFAULT 0)`,
  `CREATE TABLE steps (
    id INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL, state TEXT NOT NULL, started INTEGER NOT NULL,
    ended INTEGER, wake INTEGER, attempt INTEGER NOT NULL DEFAULT 0, config TEXT, sensitive INTEGER NOT NULL DEFAULT 0, output BLOB,
    error TEXT, message TEXT, UNIQUE (type, name, count))`,
  `CREATE TABLE attempts (step INTEGER NOT NULL, number INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER, error TEXT, message TEXT,
    PRIMARY KEY (step, number)) WITHOUT ROWID`,
  "CREATE TABLE events (id INTEGER PRIMARY KEY, type TEXT NOT NULL, payload BLOB NOT NULL, at INTEGER NOT NULL)",
  "CREATE INDEX events_by_type ON events (type, id)",
];

export const toBytes = (value) => serialize(value).bytes;
export const fromBytes = (bytes) => deserialize(new Uint8Array(bytes));

export class Records {
  #storage;
  #isMade = false;

  constructor(storage) {
    this.#storage = storage;
  }

  #run(sql, ...binds) {
    return this.#storage.sql.exec(sql, ...binds).toArray();
  }

  /** All of `work`, or nothing. */
  together(work) {
    return this.#storage.transactionSync(work);
  }

  get bytes() {
    return this.#storage.sql.databaseSize;
  }

  // The instance

  /** undefined: there is no such instance. */
  head() {
    this.#isMade ||= this.#run("SELECT 1 FROM sqlite_schema WHERE name = 'instance'").length > 0;
    return this.#isMade ? this.#run("SELECT * FROM instance")[0] : undefined;
  }

  create({ workflow, source, payload, keepComplete, keepErrored }, now) {
    this.together(() => {
      for (const table of TABLES) this.#run(table);
      const sql = "INSERT INTO instance (one, workflow, source, status, payload, created, keep_complete, keep_errored) VALUES (1, ?, ?, 'queued', ?, ?, ?, ?)";
      this.#run(sql, workflow, source, payload, now, keepComplete, keepErrored);
    });
  }

  forget() {
    this.#isMade = false;
  }

  setStatus(status) {
    this.#run("UPDATE instance SET status = ?", status);
  }

  /** One more pass over the code begins. */
  begin(now, version) {
    this.#run("UPDATE instance SET status = 'running', started = coalesce(started, ?), version = ?, tries = tries + 1", now, version);
  }

  rest(status) {
    this.#run("UPDATE instance SET status = ?, tries = 0", status);
  }

  pause(now) {
    this.#run("UPDATE instance SET status = 'paused', paused = ?, tries = 0", now);
  }

  /** What was to happen while it was paused happens that much later. */
  resume(now) {
    this.together(() => {
      this.#run("UPDATE steps SET wake = wake + ? - (SELECT paused FROM instance) WHERE state IN ('waiting', 'retry')", now);
      this.#run("UPDATE instance SET status = 'queued', paused = NULL");
    });
  }

  end(status, now, output, error) {
    const sql = "UPDATE instance SET status = ?, ended = ?, output = ?, error = ?, message = ?";
    this.#run(sql, status, now, output, error?.name ?? null, error?.message ?? null);
  }

  /** Begins anew, from the step with this id on; null: from the first. */
  restart(from, now) {
    this.together(() => {
      this.#run("DELETE FROM attempts WHERE step >= ?", from ?? 0);
      this.#run("DELETE FROM steps WHERE id >= ?", from ?? 0);
      if (from === null) this.#run("DELETE FROM events");
      this.#run(
        "UPDATE instance SET status = 'queued', created = ?, started = NULL, ended = NULL, paused = NULL, output = NULL, error = NULL, message = NULL, tries = 0",
        now,
      );
    });
  }

  // Steps

  find(type, name, count) {
    return this.#run("SELECT * FROM steps WHERE type = ? AND name = ? AND count = ?", type, name, count)[0];
  }

  add(type, name, count, { state, now, wake = null, config = null, sensitive = false }) {
    const sql = "INSERT INTO steps (type, name, count, state, started, wake, config, sensitive) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id";
    return this.#run(sql, type, name, count, state, now, wake, config, sensitive ? 1 : 0)[0].id;
  }

  beginAttempt(id, attempt, now) {
    this.together(() => {
      this.#run("UPDATE steps SET state = 'running', attempt = ?, wake = NULL WHERE id = ?", attempt, id);
      this.#run("INSERT INTO attempts (step, number, started) VALUES (?, ?, ?)", id, attempt, now);
    });
  }

  #endAttempt(id, attempt, now, error) {
    const sql = "UPDATE attempts SET ended = ?, error = ?, message = ? WHERE step = ? AND number = ?";
    this.#run(sql, now, error?.name ?? null, error?.message ?? null, id, attempt);
  }

  retry(id, attempt, now, error, wake) {
    this.together(() => {
      this.#endAttempt(id, attempt, now, error);
      this.#run("UPDATE steps SET state = 'retry', wake = ? WHERE id = ?", wake, id);
      this.#run("UPDATE instance SET tries = 0 WHERE tries > 1");
    });
  }

  fail(id, attempt, now, error) {
    this.together(() => {
      this.#endAttempt(id, attempt, now, error);
      this.#run("UPDATE steps SET state = 'failed', ended = ?, error = ?, message = ? WHERE id = ?", now, error.name, error.message, id);
      this.#run("UPDATE instance SET tries = 0 WHERE tries > 1");
    });
  }

  finish(id, attempt, now, output) {
    this.together(() => {
      this.#endAttempt(id, attempt, now, null);
      this.#run("UPDATE steps SET state = 'done', ended = ?, output = ?, wake = NULL WHERE id = ?", now, output, id);
      this.#run("UPDATE instance SET tries = 0 WHERE tries > 1");
    });
  }

  // Events

  keepEvent(type, payload, now) {
    this.#run("INSERT INTO events (type, payload, at) VALUES (?, ?, ?)", type, payload, now);
  }

  get eventCount() {
    return this.#run("SELECT count(*) AS n FROM events")[0].n;
  }

  /** Gives the oldest event of a type to the step that waits for it; undefined if there is none. */
  takeEvent(id, type, now) {
    return this.together(() => {
      const event = this.#run("DELETE FROM events WHERE id = (SELECT min(id) FROM events WHERE type = ?) RETURNING payload, at", type)[0];
      if (event === undefined) return undefined;
      const value = { payload: fromBytes(event.payload), timestamp: new Date(event.at), type };
      this.finish(id, 0, now, toBytes(value));
      return value;
    });
  }

  // For operators

  steps(limit) {
    return this.#run("SELECT * FROM steps ORDER BY id LIMIT ?", limit);
  }

  attempts(step, limit) {
    return this.#run("SELECT * FROM attempts WHERE step = ? ORDER BY number DESC LIMIT ?", step, limit).reverse();
  }

  get stepCount() {
    return this.#run("SELECT count(*) AS n FROM steps")[0].n;
  }
}
