// Answers the control API about an instance, in JSON: the shape is that of Cloudflare's API.
import { Response } from "../fetch/response.js";
import { describe } from "./errors.js";
import { fromBytes } from "./records.js";

const MOST_CHARACTERS = 4 << 20; // of results in one answer
const MOST_STEPS = 10_000;
const MOST_ATTEMPTS = 20;
const LEFT_OUT = "[the output is too large to be shown]";
const HIDDEN = "[REDACTED]";
const CHANGES = ["create", "pause", "resume", "terminate", "restart", "sendEvent", "delete"];

const isoTime = (ms) => (ms === null ? null : new Date(ms).toISOString());
const isoError = ({ error, message }) => (error === null ? null : { name: error, message });

/** A value as JSON has it. */
function toJson(value) {
  try {
    return JSON.stringify(value, (key, item) => (typeof item === "bigint" ? `${item}` : item)) ?? "null";
  } catch {
    return JSON.stringify("[the value cannot be shown as JSON]");
  }
}

/** Values until they are too many. */
class Budget {
  #left = MOST_CHARACTERS;

  show(bytes) {
    if (bytes === null || bytes.byteLength === 0) return null;
    if (bytes.byteLength > this.#left) return LEFT_OUT;
    const text = toJson(fromBytes(bytes));
    if (text.length > this.#left) return LEFT_OUT;
    this.#left -= text.length;
    return JSON.parse(text);
  }
}

function showStep(row, records, budget) {
  const name = `${row.name}-${row.count}`;
  const [start, end] = [isoTime(row.started), isoTime(row.ended)];
  const finished = row.state === "done" || row.state === "failed";
  if (row.type === "sleep") return { name, type: "sleep", start, end: isoTime(row.ended ?? row.wake), finished, error: null };
  const output = row.sensitive ? HIDDEN : budget.show(row.output);
  if (row.type === "waitForEvent") {
    return { name, type: "waitForEvent", start, end: isoTime(row.ended ?? row.wake), finished, error: isoError(row), output: row.state === "done" ? output : null, config: JSON.parse(row.config) };
  }
  const attempts = records.attempts(row.id, MOST_ATTEMPTS).map((each) => {
    const isDone = each.ended !== null;
    return { start: isoTime(each.started), end: isoTime(each.ended), success: isDone ? each.error === null : null, error: isoError(each) };
  });
  const success = finished ? row.state === "done" : null;
  return { name, type: "step", start, end, attempts, config: JSON.parse(row.config), output: row.state === "done" ? output : null, success, error: isoError(row) };
}

function show(records, id, status) {
  const row = records.head();
  const budget = new Budget();
  const isOver = row.ended !== null;
  const [params, output] = [budget.show(row.payload), budget.show(row.output)];
  const steps = records.steps(MOST_STEPS).map((each) => showStep(each, records, budget));
  if (row.status === "terminated") steps.push({ type: "termination", trigger: { source: "api" } });
  return {
    id, status, params, trigger: { source: row.source }, versionId: row.version, queued: isoTime(row.created), start: isoTime(row.started),
    end: isoTime(row.ended), steps, step_count: records.stepCount, success: isOver ? row.status === "complete" : null, error: isoError(row), output,
  };
}

/** {do, with?}: a change, or "show". */
export async function answerOperator(instance, records, id, question) {
  try {
    if (CHANGES.includes(question.do)) await instance[question.do](question.with);
    if (question.do === "delete") return new Response("{}");
    return new Response(JSON.stringify(question.do === "show" ? show(records, id, instance.status().status) : { id, status: instance.status().status }));
  } catch (error) {
    return new Response(JSON.stringify(describe(error)), { status: 400 });
  }
}
