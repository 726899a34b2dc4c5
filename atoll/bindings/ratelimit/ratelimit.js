// A rate limit as a worker sees it: https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { toDictionary } from "#web/internal/webidl.js";

const limit = defineOp("ratelimit.limit");

export class RateLimit {
  #name;

  constructor(name) {
    this.#name = name;
  }

  async limit(options) {
    const { key } = toDictionary(options, "RateLimit.limit");
    const { meta } = await limit({ binding: this.#name, key });
    return { success: meta.success };
  }
}

defineInterface(RateLimit, { describe: () => ({}) });
defineBinding("ratelimit", RateLimit);
