// Durations: a number of milliseconds, or a text such as "5 seconds" or "1 hour, 30 minutes".
import { WorkflowFatalError } from "./errors.js";

const SECOND = 1000;
const DAY = 86_400 * SECOND;
const UNITS = { __proto__: null, second: SECOND, minute: 60 * SECOND, hour: 3600 * SECOND, day: DAY, week: 7 * DAY, month: 30 * DAY, year: 365 * DAY };
const PART = /(\d+(?:\.\d+)?)\s*(second|minute|hour|day|week|month|year)s?/gy;

export const LONGEST = 365 * DAY;

/** Milliseconds; NaN if it is not a duration. */
export function toMs(value) {
  if (typeof value === "number") return value >= 0 ? Math.ceil(value) : NaN;
  if (typeof value !== "string") return NaN;
  const text = value.trim().toLowerCase();
  let sum = 0;
  let at = 0;
  while (at < text.length) {
    PART.lastIndex = at;
    const found = PART.exec(text);
    if (found === null) return NaN;
    sum += Number(found[1]) * UNITS[found[2]];
    at = PART.lastIndex;
    while (at < text.length && (text[at] === "," || text[at] === " ")) at++;
  }
  return text === "" ? NaN : Math.ceil(sum);
}

/** The same for a duration that the code of a workflow gives. */
export function durationOf(value, what) {
  const ms = toMs(value);
  if (Number.isNaN(ms)) throw new WorkflowFatalError(`${what} is not a duration: use milliseconds, or a text such as "5 minutes".`);
  if (ms > LONGEST) throw new WorkflowFatalError(`${what} is longer than 365 days.`);
  return ms;
}
