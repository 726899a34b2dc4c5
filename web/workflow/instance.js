// An instance of a workflow: a Durable Object that runs the code of the workflow, with the class that the worker exports for it.
//
// Its alarm starts the passes (run.js). The alarm is durable, and is delivered again if its handler does not come to an end: so
// an instance goes on after the end of an engine, of the node, and of the version that it began with.
import { beginPass, reportStatus } from "#bindings/workflow_instance/workflow_instance.js";
import { callOf } from "../internal/async_context.js";
import { inspect } from "../internal/show.js";
import { native } from "../internal/native.js";
import { Level } from "../internal/wire.gen.js";
import { DurableObject } from "../objects/base.js";
import { runningCall } from "../worker/call.js";
import { createContext } from "../worker/context.js";
import { currentEnv } from "../worker/env.js";
import { answerOperator } from "./operator.js";
import { toMs } from "./durations.js";
import { codedError, describe, INTERRUPTED, WorkflowFatalError } from "./errors.js";
import { fromBytes, Records, toBytes } from "./records.js";
import { now, Run } from "./run.js";
import { canUndo, isEventType, MOST_BYTES, undo, WorkflowStep } from "./step.js";

export const FINITE = ["complete", "errored", "terminated"];
const MOST_TRIES = 8; // passes that end without a result of any step, such as those that use up their memory
const MOST_EVENTS = 1000; // that wait for a step
const AGAIN_MS = 60_000;
const SOON_MS = 250;
const REPORT_MS = 1000;
const STEPS = 10_000;

const isEnded = (row) => FINITE.includes(row.status);
const ofClass = new WeakMap(); // class of a worker -> class of its instances

/** The class of the objects that run `Class`. */
export function instanceClassOf(Class) {
  let found = ofClass.get(Class);
  if (found === undefined) {
    found = class extends WorkflowInstance {
      constructor(ctx, env) {
        super(ctx, env, Class);
      }
    };
    ofClass.set(Class, found);
  }
  return found;
}

class WorkflowInstance extends DurableObject {
  #Class;
  #records;
  #run = null; // the pass under way
  #isPassing = false;

  constructor(ctx, env, Class) {
    super(ctx, env);
    this.#Class = Class;
    this.#records = new Records(ctx.storage);
  }

  get #id() {
    return this.ctx.id.name;
  }

  /** The row of the instance. */
  #row() {
    const row = this.#records.head();
    if (row === undefined) throw codedError("instance.not_found", "Instance does not exist");
    return row;
  }

  // What workers and operators ask for. Python lets only these names through (atoll/bindings/workflow/ops.py).

  async create({ workflow, source, params, retention }) {
    if (this.#records.head() !== undefined) throw codedError("instance.already_exists", "Instance already exists");
    const payload = toBytes(params);
    if (payload.length > MOST_BYTES) throw new Error("The parameters of a workflow instance are too large. Maximum allowed size is 1MiB.");
    const [keepComplete, keepErrored] = [retention?.successRetention, retention?.errorRetention].map(readRetention);
    this.#records.create({ workflow, source, payload, keepComplete, keepErrored }, now());
    await this.ctx.storage.setAlarm(now());
    try {
      await this.#report();
    } catch (error) {
      await this.#erase();
      throw error;
    }
    return this.#id;
  }

  status() {
    const row = this.#row();
    const status = row.status === "running" && this.#run?.isWaiting ? "waiting" : row.status;
    const error = row.error === null ? null : { name: row.error, message: row.message };
    return { status, error, output: row.output === null ? null : fromBytes(row.output) };
  }

  async pause() {
    const row = this.#row();
    if (isEnded(row)) throw codedError("instance.cannot_pause", "Cannot pause instance since its on a finite state");
    if (row.status === "paused") return;
    if (this.#isPassing) {
      this.#records.setStatus("waitingForPause"); // until the steps that run are done
      this.#run?.pause(true);
    } else {
      this.#records.pause(now());
      await this.#reportLater();
    }
    await this.#report();
  }

  async resume() {
    const row = this.#row();
    if (isEnded(row)) throw codedError("instance.cannot_resume", "Cannot resume instance since its on a finite state");
    if (row.status === "waitingForPause") {
      this.#records.setStatus("running");
      this.#run?.pause(false);
    }
    if (row.status !== "paused") return;
    this.#records.resume(now());
    await this.ctx.storage.setAlarm(now());
    await this.#report();
  }

  async terminate(options = undefined) {
    if (isEnded(this.#row())) throw codedError("instance.cannot_terminate", "Cannot terminate instance since its on a finite state");
    if (options?.rollback) throw codedError("instance.cannot_terminate", "Atoll undoes steps only when the code of a workflow fails: terminate without `rollback`");
    this.#stop();
    this.#records.end("terminated", now(), null, null);
    await this.#reportLater();
    await this.#report();
  }

  async restart(options = undefined) {
    this.#row();
    const from = options?.from;
    let first = null;
    if (from !== undefined && from !== null) {
      const type = from.type === undefined || from.type === "do" ? "step" : from.type;
      const step = this.#records.find(`${type}`, `${from.name}`, Number(from.count ?? 1));
      if (step === undefined) throw codedError("instance.cannot_restart", `Step "${from.name}" not found in execution history`);
      first = step.id;
    }
    this.#stop();
    this.#records.restart(first, now());
    await this.ctx.storage.setAlarm(now());
    await this.#report();
  }

  async sendEvent({ type, payload }) {
    const row = this.#row();
    if (!isEventType(type)) throw new Error("The type of an event has up to 100 letters, digits, dashes, dots and _.");
    if (isEnded(row)) throw codedError("instance.not_running", `Cannot send an event to an instance that is ${row.status}`);
    const bytes = toBytes(payload);
    if (bytes.length > MOST_BYTES) throw new Error("The payload of an event is too large. Maximum allowed size is 1MiB.");
    if (this.#records.eventCount >= MOST_EVENTS) throw new Error(`${MOST_EVENTS} events of this instance wait for a step already.`);
    this.#records.keepEvent(type, bytes, now());
    if (this.#run !== null) this.#run.deliver(type);
    else if (row.status !== "paused") await this.ctx.storage.setAlarm(now());
  }

  async delete() {
    this.#row();
    this.#stop();
    await this.#erase();
    await reportStatus({ instance: this.#id, status: "deleted" });
  }

  /** A question of the control API, in JSON. */
  async fetch(request) {
    return answerOperator(this, this.#records, this.#id, await request.json());
  }

  // Passes

  /** Ends the pass under way. What its steps do goes on until their call ends, which is soon. */
  #stop() {
    this.#run?.end({ kind: "stopped" });
    this.#run = null;
  }

  async #erase() {
    await this.ctx.storage.deleteAll();
    await this.ctx.storage.deleteAlarm();
    this.#records.forget();
  }

  async #report() {
    const row = this.#records.head();
    if (row === undefined) return;
    const keep = row.status === "complete" ? row.keep_complete : row.keep_errored;
    await reportStatus({ instance: this.#id, status: row.status, created: row.created, started: row.started, ended: row.ended, keep });
  }

  /** The node may end before it has heard of a change: the alarm tells it then. */
  async #reportLater() {
    await this.ctx.storage.setAlarm(now() + REPORT_MS);
  }

  /** The row if a pass may go on. */
  #passable() {
    const row = this.#records.head();
    if (row?.status === "waitingForPause") {
      this.#records.pause(now());
      return undefined;
    }
    return row === undefined || isEnded(row) || row.status === "paused" ? undefined : row;
  }

  async alarm({ retryCount }) {
    if (this.#isPassing) {
      await this.ctx.storage.setAlarm(now() + (this.#run === null ? SOON_MS : AGAIN_MS));
      return;
    }
    if (this.#passable() === undefined) {
      await this.#report();
      return;
    }
    // A new alarm has new retries: however often the call ends early, the instance is not forgotten.
    if (retryCount >= 3) await this.ctx.storage.setAlarm(now() + AGAIN_MS);
    this.#isPassing = true;
    try {
      const { wait, steps, version } = (await beginPass({})).meta;
      if (wait > 0) await this.ctx.storage.setAlarm(now() + wait);
      else await this.#pass(steps ?? STEPS, version);
      await this.#report();
    } finally {
      this.#isPassing = false;
    }
  }

  async #pass(steps, version) {
    if (this.#passable() === undefined) return;
    if (this.#records.head().tries >= MOST_TRIES) {
      this.#end({ kind: "error", error: INTERRUPTED });
      return;
    }
    this.#records.begin(now(), version);
    await this.#report();
    const row = this.#passable();
    if (row === undefined) return;
    const run = new Run();
    this.#run = run;
    const step = new WorkflowStep(run, this.#records, steps);
    const outcome = await run.begin(() => this.#runCode(row, step));
    if (this.#run !== run) return; // terminated, restarted or deleted
    this.#run = null;
    if (outcome.kind === "rest") await this.#rest(run, outcome.wake);
    else this.#end(outcome);
  }

  async #runCode(row, step) {
    const context = createContext(runningCall(callOf(native.getAsyncContext())));
    const code = new this.#Class(context, currentEnv());
    const event = { payload: fromBytes(row.payload), timestamp: new Date(row.created), instanceId: this.#id, workflowName: row.workflow };
    try {
      return await code.run(event, step);
    } catch (error) {
      if (canUndo(step)) await undo(step, error).catch(() => {}); // it stops with the first that fails, which is among the steps
      throw error;
    }
  }

  async #rest(run, wake) {
    if (run.isPausing) {
      this.#records.pause(now());
      return;
    }
    this.#records.rest(wake <= now() ? "running" : "waiting");
    await this.ctx.storage.setAlarm(Math.max(wake, 1));
  }

  #end({ kind, value, error }) {
    let failure = kind === "error" ? error : null;
    let output = null;
    if (kind === "complete" && value !== undefined) {
      try {
        output = toBytes(value);
        if (output.length > MOST_BYTES) throw new WorkflowFatalError("The output of the workflow is too large. Maximum allowed size is 1MiB.");
      } catch (refused) {
        failure = refused;
        output = null;
      }
    }
    if (failure === null) this.#records.end("complete", now(), output, null);
    else {
      native.log(Level.ERROR, `Instance ${this.#id} failed: ${failure === INTERRUPTED ? INTERRUPTED.message : inspect(failure)}`);
      this.#records.end("errored", now(), null, failure === INTERRUPTED ? INTERRUPTED : describe(failure));
    }
  }
}

function readRetention(value) {
  if (value === undefined || value === null) return null;
  const ms = toMs(value);
  if (Number.isNaN(ms)) throw new Error('A retention is milliseconds, or a text such as "3 days".');
  return ms;
}

