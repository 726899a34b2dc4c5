// Rejected promises without a handler.
// expect: memory or cpu
// limits: cpu_ms=500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    for (;;) Promise.reject(new Array(100).fill(1));
  },
};
