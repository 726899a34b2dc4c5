// Echo as a worker sees it: env.NAME returns its input. The other half is ops.py.
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";

const say = defineOp("echo.say");
const wait = defineOp("echo.wait");

export class Echo {
  #name; // the name in env: the broker finds the grant by it

  constructor(name) {
    this.#name = name;
  }

  async say(text) {
    const { meta } = await say({ binding: this.#name, text: `${text}` });
    return meta.text;
  }

  async sayBytes(bytes) {
    const { body } = await say({ binding: this.#name }, bytes);
    return body;
  }

  async wait(ms) {
    const { meta } = await wait({ binding: this.#name, ms });
    return meta.ms;
  }
}

defineBinding("echo", Echo);
