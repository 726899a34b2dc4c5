// Each Promise.race leaves a reaction at a promise that never settles.
// expect: memory
// limits: cpu_ms=5000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const never = new Promise(() => {});
    for (;;) Promise.race([never, never]);
  },
};
