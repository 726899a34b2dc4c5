// Numbers with ever more digits.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (let i = 1n; ; i++) all.push(1n << (100000n + i));
  },
};
