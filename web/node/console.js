// https://nodejs.org/api/console.html: every console writes to the log.
import { console } from "../console.js";

export const {
  assert, clear, count, countReset, debug, dir, dirxml, error, group, groupCollapsed, groupEnd, info, log, table, time, timeEnd,
  timeLog, trace, warn,
} = console;

export default console;
