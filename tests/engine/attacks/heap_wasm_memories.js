// WebAssembly memories without a single page: each reserves eight gigabytes of address space, which other workers need too.
// expect: memory
// limits: cpu_ms=5000 memory_mb=64
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(new WebAssembly.Memory({ initial: 0, maximum: 0 }));
  },
};
