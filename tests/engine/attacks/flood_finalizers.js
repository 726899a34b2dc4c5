// A hundred thousand objects with a finalizer.
// expect: answer ok or cpu
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const registry = new FinalizationRegistry(() => {
      for (let i = 0; i < 1e6; i++);
    });
    for (let i = 0; i < 1e5; i++) registry.register({}, i);
    return new Response("ok");
  },
};
