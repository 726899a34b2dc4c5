// Counters by name. A counter that nobody has used for a while goes back to 0: its alarm does that.
import { DurableObject } from "cloudflare:workers";

const FORGOTTEN_MS = 60 * 60 * 1000;

export class Counter extends DurableObject {
  async increment() {
    const value = ((await this.ctx.storage.get("value")) ?? 0) + 1;
    await this.ctx.storage.put("value", value);
    await this.ctx.storage.setAlarm(Date.now() + FORGOTTEN_MS);
    return value;
  }

  async alarm() {
    await this.ctx.storage.deleteAll();
  }
}

export default {
  async fetch(request, env) {
    const name = new URL(request.url).pathname.slice(1) || "default";
    return new Response(`${name} is ${await env.COUNTER.getByName(name).increment()}\n`);
  },
};
