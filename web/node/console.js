// https://nodejs.org/api/console.html: every console writes to the log.
import { console } from "../console.js";
import { notImplemented } from "./http_common.js";
import { process } from "./process.js";

export const {
  assert, clear, count, countReset, debug, dir, dirxml, error, group, groupCollapsed, groupEnd, info, log, table, time, timeEnd,
  timeLog, trace, warn,
} = console;

export function Console() {
  throw notImplemented("Console");
}

export function context() {
  throw notImplemented("Console.context");
}

export function createTask() {
  throw notImplemented("Console.createTask");
}

export function profile() {}

export function profileEnd() {}

export function timeStamp() {}

export const _times = new Map();
export const _ignoreErrors = true;
export const _stderrErrorHandler = () => {};
export const _stdoutErrorHandler = () => {};
export const { stderr: _stderr, stdout: _stdout } = process;

// As in Node, the module is the global console, which then has these too.
for (const member of [Console, context, createTask, profile, profileEnd, timeStamp]) {
  if (!(member.name in console)) Object.defineProperty(console, member.name, { value: member, writable: true, configurable: true });
}

export default console;
