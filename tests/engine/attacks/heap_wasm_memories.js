// Memories without a single page: each takes eight gigabytes of addresses, of which other workers want some too.
// expect: memory
// limits: cpu_ms=5000 memory_mb=64
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(new WebAssembly.Memory({ initial: 0, maximum: 0 }));
  },
};
