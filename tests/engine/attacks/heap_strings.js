// Many different strings.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (let i = 0; ; i++) all.push(`${i} `.repeat(1000) + i);
  },
};
