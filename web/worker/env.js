// env, the second argument of a handler: variables as they are, bindings as objects of their kind.
import { Echo } from "#bindings/echo/echo.js";
import { KVNamespace } from "#bindings/kv/kv.js";
import { Queue } from "#bindings/queue/queue.js";
import { RateLimit } from "#bindings/ratelimit/ratelimit.js";
import { Service } from "#bindings/service/service.js";

// kind -> class; the one line a new binding adds.
const BINDINGS = { echo: Echo, kv: KVNamespace, queue: Queue, ratelimit: RateLimit, service: Service };

let env = {};

/** The variables and bindings of this worker. */
export function currentEnv() {
  return env;
}

/** `vars` are JSON values, `grants` a list of { name, kind }. A binding knows its name and nothing else. */
export function makeEnv(vars, grants) {
  env = { ...vars };
  for (const { name, kind } of grants ?? []) {
    const Binding = BINDINGS[kind];
    if (Binding === undefined) throw new TypeError(`There is no kind of binding called "${kind}".`);
    env[name] = new Binding(name);
  }
  return env;
}
