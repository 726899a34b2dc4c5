// Errors with their stacks.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    const deep = (n) => (n > 0 ? deep(n - 1) : new Error("x".repeat(1000)));
    for (;;) {
      const error = deep(50);
      all.push(error, error.stack);
    }
  },
};
