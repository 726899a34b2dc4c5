// A hundred thousand promises in waitUntil.
// expect: answer ok
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; i < 1e5; i++) ctx.waitUntil(Promise.resolve());
    return new Response("ok");
  },
};
