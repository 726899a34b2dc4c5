// A workflow as a worker sees it: https://developers.cloudflare.com/workflows/build/workers-api/#workflow
//
// Its instances are Durable Objects (web/workflow/instance.js), whose methods are called here.
import { defineBinding } from "#web/internal/bindings.js";
import { lazy } from "#web/internal/lazy.js";
import { native } from "#web/internal/native.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { requireArguments } from "#web/internal/webidl.js";

const call = defineOp("workflow.call");
const OURS = Symbol("ours"); // only this module makes instances
const ID = /^[a-zA-Z0-9_][a-zA-Z0-9-_]*$/;
const MOST_ID = 100;
const MOST_BATCH = 100;

const fail = (message) => {
  throw new (lazy("workflow/errors.js").WorkflowError)(message);
};

/** Calls a method of an instance. */
function ask(binding, instance, method, ...args) {
  return lazy("rpc/service_stub.js").askEntrypoint(call, { binding, instance }, [method], args).promise;
}

class WorkflowInstance {
  #binding;
  #id;

  constructor(token, binding, id) {
    if (token !== OURS) throw new TypeError("Illegal constructor");
    this.#binding = binding;
    this.#id = id;
  }

  get id() {
    return this.#id;
  }

  async status() {
    const { status, error, output } = await ask(this.#binding, this.#id, "status");
    return { status, error, output };
  }

  async pause() {
    await ask(this.#binding, this.#id, "pause");
  }

  async resume() {
    await ask(this.#binding, this.#id, "resume");
  }

  async terminate(options = undefined) {
    await ask(this.#binding, this.#id, "terminate", options);
  }

  async restart(options = undefined) {
    await ask(this.#binding, this.#id, "restart", options);
  }

  async delete() {
    await ask(this.#binding, this.#id, "delete");
  }

  async sendEvent(event) {
    requireArguments(arguments.length, 1, "sendEvent");
    const { type, payload } = event;
    await ask(this.#binding, this.#id, "sendEvent", { type, payload });
  }
}

defineInterface(WorkflowInstance, { name: "WorkflowInstance", describe: ({ id }) => ({ id }) });

class Workflow {
  #binding;
  #name;

  constructor(binding, facts) {
    this.#binding = binding;
    this.#name = facts?.workflow;
  }

  async create(options = undefined) {
    const { id = native.randomUUID(), params = {}, retention } = options ?? {};
    if (typeof id !== "string" || id.length > MOST_ID || !ID.test(id)) fail("Workflow instance has invalid id");
    await ask(this.#binding, id, "create", { workflow: this.#name, source: "binding", params, retention });
    return new WorkflowInstance(OURS, this.#binding, id);
  }

  /** Instances that exist already are left out. */
  async createBatch(batch) {
    requireArguments(arguments.length, 1, "createBatch");
    const all = Array.from(batch);
    if (all.length === 0) throw new Error("WorkflowError: batchCreate should have at least 1 instance");
    if (all.length > MOST_BATCH) throw new Error(`WorkflowError: batchCreate should have at most ${MOST_BATCH} instances`);
    const made = await Promise.allSettled(all.map((options) => this.create(options)));
    for (const { reason } of made) if (reason !== undefined && !`${reason.message}`.includes("(instance.already_exists)")) throw reason;
    return made.filter(({ status }) => status === "fulfilled").map(({ value }) => value);
  }

  async get(id) {
    requireArguments(arguments.length, 1, "get");
    const instance = new WorkflowInstance(OURS, this.#binding, `${id}`);
    try {
      await instance.status();
    } catch (error) {
      if (`${error.message}`.includes("(instance.not_found)")) throw new Error("instance.not_found", { cause: error });
      throw error;
    }
    return instance;
  }

  async deleteBatch(ids) {
    requireArguments(arguments.length, 1, "deleteBatch");
    const all = Array.from(ids, (id) => `${id}`);
    if (all.length > MOST_BATCH) throw new Error(`WorkflowError: deleteBatch should have at most ${MOST_BATCH} instances`);
    await Promise.all(all.map((id) => ask(this.#binding, id, "delete")));
  }
}

defineInterface(Workflow, { name: "Workflow" });
defineBinding("workflow", Workflow);
