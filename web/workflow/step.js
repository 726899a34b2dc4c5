// `step`, the second argument of run(): https://developers.cloudflare.com/workflows/build/workers-api/#step
//
// A step is known by its name and how often the code has used that name before. Its result is stored; when the code runs again,
// the step gives the stored result and does nothing else.
import { native } from "../internal/native.js";
import { Level } from "../internal/wire.gen.js";
import { delayOf, readConfig, shownConfig } from "./config.js";
import { durationOf } from "./durations.js";
import { describe, endsRetries, INTERRUPTED, thrown, WorkflowFatalError, WorkflowTimeoutError } from "./errors.js";
import { after, never, now } from "./run.js";
import { fromBytes, toBytes } from "./records.js";

export const MOST_BYTES = 1 << 20; // of a result, an event, the parameters
const MOST_STORED = 1 << 30; // of an instance
const MOST_NAME = 256;
const CONTROL = /[\x00-\x1F]/;
const EVENT_TYPE = /^[a-zA-Z0-9_][a-zA-Z0-9-_.]*$/;
const MOST_TYPE = 100;

export const isEventType = (type) => typeof type === "string" && type.length <= MOST_TYPE && EVENT_TYPE.test(type);

export class WorkflowStep {
  #run;
  #records;
  #most;
  #used = new Map(); // type and name -> how often
  #count = 0;
  #undo = []; // { id, name, rollback, output() } of the steps that can be undone

  constructor(run, records, most) {
    this.#run = run;
    this.#records = records;
    this.#most = most;
  }

  async do(name, ...rest) {
    const { config: given, callback, options } = readArguments(name, rest);
    const count = this.#begin("step", name);
    const config = readConfig(given, name);
    const row = this.#records.find("step", name, count);
    const rollback = readRollback(options, name);
    if (rollback !== null) this.#undo.push({ name, count, ...rollback });
    if (row?.state === "done") return fromBytes(row.output);
    if (row?.state === "failed") throw thrown({ name: row.error, message: row.message });
    return this.#attempts(name, count, config, callback, row);
  }

  /** Attempts until one succeeds, or none is left. */
  async #attempts(name, count, config, callback, row) {
    const run = this.#run;
    const records = this.#records;
    let id = row?.id;
    let attempt = row?.attempt ?? 0;
    let wake = row?.wake ?? 0;
    let failure = row?.state === "running" ? INTERRUPTED : null;
    for (;;) {
      const context = { step: { name, count }, attempt: attempt + 1, config };
      if (failure !== null) {
        wake = await this.#afterFailure(id, name, attempt, config, context, failure);
        failure = null;
      }
      if (wake > now()) await run.wait(wake);
      await run.admit();
      id ??= records.add("step", name, count, { state: "running", now: now(), config: shownConfig(config), sensitive: config.sensitive !== undefined });
      attempt++;
      records.beginAttempt(id, attempt, now());
      let bytes;
      try {
        bytes = this.#stored(name, await this.#attempt(callback, context, config));
      } catch (error) {
        failure = error;
      }
      if (run.isOver) await never();
      if (failure !== null) continue;
      records.finish(id, attempt, now(), bytes);
      return fromBytes(bytes);
    }
  }

  /** When the next attempt is; throws if there is none. */
  async #afterFailure(id, name, attempt, config, context, failure) {
    const told = failure === INTERRUPTED ? INTERRUPTED : describe(failure);
    native.log(Level.WARN, `Step "${name}", attempt ${attempt}: ${told.name}: ${told.message}`);
    let fatal = failure instanceof WorkflowFatalError || endsRetries(failure) || attempt > config.retries.limit;
    let last = told;
    let delay = 0;
    if (!fatal) {
      try {
        delay = await delayOf(config, attempt, { ...context, attempt }, failure, name);
      } catch (error) {
        fatal = true;
        last = describe(error);
      }
      if (this.#run.isOver) await never();
    }
    if (fatal) {
      this.#records.fail(id, attempt, now(), last);
      throw thrown(last);
    }
    const wake = now() + delay;
    this.#records.retry(id, attempt, now(), told, wake);
    return wake;
  }

  #attempt(callback, context, config) {
    const run = this.#run;
    const timeout = Math.min(durationOf(config.timeout, "`timeout`"), run.left);
    run.enter();
    return new Promise((resolve, reject) => {
      const stop = after(timeout, () => end(reject, new WorkflowTimeoutError(`Execution timed out after ${timeout}ms`)));
      let isOver = false;
      const end = (settle, value) => {
        if (isOver) return;
        isOver = true;
        stop();
        settle(value);
        run.leave();
      };
      new Promise((start) => start(callback(context))).then(
        (value) => end(resolve, value),
        (error) => end(reject, error),
      );
    });
  }

  /** The bytes of a result. */
  #stored(name, value) {
    let bytes;
    try {
      bytes = toBytes(value);
    } catch {
      throw new WorkflowFatalError(`Value returned from step "${name}" is not serialisable`);
    }
    if (bytes.length > MOST_BYTES) throw new WorkflowFatalError(`Step ${name} output is too large. Maximum allowed size is 1MiB.`);
    if (this.#records.bytes + bytes.length > MOST_STORED) throw new WorkflowFatalError("The instance stores 1 GB, the most that it may.");
    return bytes;
  }

  async sleep(name, duration) {
    const ms = durationOf(duration, `The duration of sleep "${name}"`);
    await this.#sleep(name, now() + ms);
  }

  async sleepUntil(name, time) {
    const at = time instanceof Date ? time.getTime() : Number(time);
    const count = this.#begin("sleep", name);
    if (this.#records.find("sleep", name, count) === undefined) {
      if (Number.isNaN(at)) throw new WorkflowFatalError(`The time of sleep "${name}" is not a date.`);
      if (at < now()) throw new Error("You can't sleep until a time in the past, time-traveler");
      durationOf(at - now(), `The duration of sleep "${name}"`);
    }
    await this.#rest(name, count, at);
  }

  async #sleep(name, until) {
    await this.#rest(name, this.#begin("sleep", name), until);
  }

  async #rest(name, count, until) {
    const records = this.#records;
    const row = records.find("sleep", name, count);
    if (row?.state === "done") return;
    const id = row?.id ?? records.add("sleep", name, count, { state: "waiting", now: now(), wake: until });
    const wake = row?.wake ?? until;
    if (wake > now() || this.#run.isPausing) await this.#run.wait(wake);
    if (this.#run.isOver) await never();
    records.finish(id, 0, now(), null);
  }

  async waitForEvent(name, options) {
    const { type } = options ?? {};
    if (!isEventType(type)) throw new WorkflowFatalError(`waitForEvent "${name}": \`type\` must be up to ${MOST_TYPE} letters, digits, dashes, dots and _.`);
    const timeout = durationOf(options.timeout ?? "24 hours", `\`timeout\` of waitForEvent "${name}"`);
    const count = this.#begin("waitForEvent", name);
    const records = this.#records;
    const row = records.find("waitForEvent", name, count);
    if (row?.state === "done") return fromBytes(row.output);
    if (row?.state === "failed") throw thrown({ name: row.error, message: row.message });
    const id = row?.id ?? records.add("waitForEvent", name, count, { state: "waiting", now: now(), wake: now() + timeout, config: JSON.stringify({ type, timeout }) });
    const wake = row?.wake ?? now() + timeout;
    for (;;) {
      const event = records.takeEvent(id, type, now());
      if (event !== undefined) return event;
      if (wake <= now()) break;
      await this.#run.wait(wake, type);
      if (this.#run.isOver) await never();
    }
    const error = { name: "WorkflowTimeoutError", message: `Execution timed out after ${timeout}ms` };
    records.fail(id, 0, now(), error);
    throw thrown(error);
  }

  /** Counts a step; how often its name was used. */
  #begin(type, name) {
    if (++this.#count > this.#most) {
      throw new WorkflowFatalError(`The limit of ${this.#most} steps has been reached. This limit can be changed in your worker configuration.`);
    }
    if (typeof name !== "string" || name.length > MOST_NAME || CONTROL.test(name)) {
      throw new WorkflowFatalError(`Step name "${`${name}`.slice(0, MOST_NAME)}" exceeds max length (${MOST_NAME} chars) or invalid characters found`);
    }
    const key = `${type} ${name}`;
    const count = (this.#used.get(key) ?? 0) + 1;
    this.#used.set(key, count);
    return count;
  }

  /** Undoes the steps that have been begun and can be undone, the last one first. Each is a step of its own, with retries. */
  static async undo(step, error) {
    for (const { name, count, rollback, config } of step.#undo.reverse()) {
      const row = step.#records.find("step", name, count);
      if (row === undefined) continue;
      const output = row.state === "done" ? fromBytes(row.output) : undefined;
      await step.do(`rollback ${name}-${count}`.slice(0, MOST_NAME), config ?? {}, () => rollback({ error, output, stepName: name }));
    }
  }

  static canUndo(step) {
    return step.#undo.length > 0;
  }
}

export const undo = WorkflowStep.undo;
export const canUndo = WorkflowStep.canUndo;
delete WorkflowStep.undo;
delete WorkflowStep.canUndo;

/** (name, callback, options?) or (name, config, callback, options?) */
function readArguments(name, rest) {
  const [config, callback, options] = typeof rest[0] === "function" ? [undefined, ...rest] : rest;
  if (typeof callback !== "function") throw new TypeError(`Step "${name}" has no function: use step.do(name, callback) or step.do(name, config, callback).`);
  return { config, callback, options };
}

function readRollback(options, name) {
  if (options?.rollback === undefined) return null;
  if (typeof options.rollback !== "function") throw new TypeError(`\`rollback\` of step "${name}" is not a function.`);
  return { rollback: options.rollback, config: options.rollbackConfig };
}
