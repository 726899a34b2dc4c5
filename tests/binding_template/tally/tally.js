// A tally as a worker sees it. The half that counts is ops.py.
import { defineBinding } from "#web/internal/bindings.js";
import { defineEvent } from "#web/internal/events.js";
import { defineOp } from "#web/internal/ops.js";
import { callHandler } from "#web/worker/events.js";

const add = defineOp("tally.add");

export class Tally {
  #name;

  constructor(name) {
    this.#name = name;
  }

  async add() {
    const { meta } = await add({ binding: this.#name });
    return meta.count;
  }
}

defineBinding("tally", Tally);

defineEvent("tallied", async (target, meta, body, call) => {
  await callHandler(target, "tallied", meta, call);
  return {};
});
