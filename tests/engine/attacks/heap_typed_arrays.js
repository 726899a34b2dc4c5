// Allocates typed arrays and catches the first failure.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) {
      try {
        all.push(new Uint8Array(1e6).fill(1));
      } catch {
        all.push(new Array(1e4).fill(0));
      }
    }
  },
};
