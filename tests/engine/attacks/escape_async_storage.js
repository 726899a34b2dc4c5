// A call must not find what another call puts into its asynchronous storage in any possible way.
// expect: answer clean
// times: 5
// limits: cpu_ms=1000
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
const storage = new AsyncLocalStorage();
let calls = 0;
export default {
  async fetch(request, env, ctx) {
    const found = [storage.getStore()];
    calls++;
    storage.enterWith?.(`secret of ${calls}`);
    storage.run(`secret of ${calls}`, () => {
      globalThis.resource ??= new AsyncResource("x");
      ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 3)));
      queueMicrotask(() => {});
      addEventListener("x", () => found.push(storage.getStore()));
      globalThis.later ??= [];
      globalThis.later.push(new Promise((resolve) => setTimeout(resolve, 1)));
    });
    await globalThis.later[0];
    await env.ECHO.say({ calls });
    found.push(calls > 1 ? storage.exit(() => storage.getStore()) : undefined);
    return new Response(found.every((value) => value === undefined) ? "clean" : JSON.stringify(found));
  },
};
