// Calls waitUntil a hundred thousand times on the context of a call that has ended.
// expect: answer first or answer over
// times: 4
// limits: cpu_ms=2000
let old = null;
export default {
  async fetch(request, env, ctx) {
    if (old === null) {
      old = ctx;
      return new Response("first");
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    for (let i = 0; i < 100_000; i++) {
      try {
        old.waitUntil(new Promise(() => {}));
        old.passThroughOnException();
      } catch {
        continue;
      }
    }
    old = ctx;
    return new Response("over");
  },
};
