// Endless iterables, passed to constructors that read them to the end.
// expect: memory
// limits: cpu_ms=5000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    new URLSearchParams({
      *[Symbol.iterator]() {
        for (;;) yield ["a", "b"];
      },
    });
  },
};
