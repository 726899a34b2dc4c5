// A set that grows until its table cannot.
// expect: memory or cpu
// engine: may be replaced
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = new Set();
    for (let i = 0; ; i++) all.add(i);
  },
};
