// Promises that wait for each other.
// expect: memory or cpu
// limits: cpu_ms=500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    let last = Promise.resolve();
    for (;;) last = last.then(() => new Array(100).fill(1));
  },
};
