// Closures that hold each other.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    let hold = () => 0;
    for (;;) {
      const before = hold;
      const ballast = new Array(100).fill(1);
      hold = () => [before, ballast];
    }
  },
};
