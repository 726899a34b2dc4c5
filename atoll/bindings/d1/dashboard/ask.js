// What the pages of D1 ask of a database.
import { at, call, get } from "#dashboard/core/api.js";
import { may } from "#dashboard/core/session.js";

export const pathOf = (database) => at`/api/d1/${database}`;

const shaped = ({ result }) =>
  result.map(({ results: { columns, rows }, meta }) => ({ columns, rows, read: meta.rows_read, written: meta.rows_written, changes: meta.changes }));

export const readerOf = (database) => async (sql, params, signal) =>
  shaped(await call("POST", `${pathOf(database)}/read`, { sql, params }, { signal }))[0];

export const runnerOf = (database) => async (sql, writes) => shaped(await call("POST", `${pathOf(database)}/${writes ? "raw" : "read"}`, { sql }, { timeout: 0 }));

export const bookmarkOf = async (database, timestamp = "", signal = undefined) => (await get(`${pathOf(database)}/time_travel/bookmark`, { timestamp }, { signal })).bookmark;

export const restore = (database, bookmark) => call("POST", `${pathOf(database)}/time_travel/restore?${new URLSearchParams({ bookmark })}`);

export const mayChange = () => may("deploy");
