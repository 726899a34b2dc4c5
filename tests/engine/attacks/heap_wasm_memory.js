// Many WebAssembly memories.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(new WebAssembly.Memory({ initial: 100 }));
  },
};
