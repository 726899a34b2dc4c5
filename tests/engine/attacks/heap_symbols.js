// Endless symbols in the registry of Symbol.for.
// expect: memory or cpu
// limits: cpu_ms=500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (let i = 0; ; i++) all.push(Symbol.for(`symbol ${i}`));
  },
};
