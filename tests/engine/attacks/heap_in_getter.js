// Fills its memory while the platform reads its error.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    throw Object.defineProperty(new Error("x"), "message", {
      get() {
        const all = [];
        for (;;) all.push(new Array(1000).fill(1));
      },
    });
  },
};
