// https://nodejs.org/api/sqlite.html: a worker stores in D1 and in Durable Objects; there are no database files.
import { notImplemented } from "./http_common.js";

export class DatabaseSync {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

export class StatementSync {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

export class Session {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

export function backup() {
  throw notImplemented("backup");
}

export const constants = {
  SQLITE_CHANGESET_OMIT: 0,
  SQLITE_CHANGESET_REPLACE: 1,
  SQLITE_CHANGESET_ABORT: 2,
  SQLITE_CHANGESET_DATA: 1,
  SQLITE_CHANGESET_NOTFOUND: 2,
  SQLITE_CHANGESET_CONFLICT: 3,
  SQLITE_CHANGESET_CONSTRAINT: 4,
  SQLITE_CHANGESET_FOREIGN_KEY: 5,
};
