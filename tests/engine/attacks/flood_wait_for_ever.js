// waitUntil with a promise that never settles.
// expect: answer ok
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    ctx.waitUntil(new Promise(() => {}));
    return new Response("ok");
  },
};
