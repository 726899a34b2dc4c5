// Weak references to collected objects.
// expect: memory
// limits: cpu_ms=5000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(new WeakRef({}));
  },
};
