// One call settles a promise of another call.
// expect: answer got string
// times: 3
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    if (!globalThis.release) {
      const gate = new Promise((resolve) => {
        globalThis.release = resolve;
      });
      setTimeout(() => globalThis.release("timer"), 200);
      return new Response(`got ${typeof (await gate)}`);
    }
    globalThis.release("another call");
    return new Response("got string");
  },
};
