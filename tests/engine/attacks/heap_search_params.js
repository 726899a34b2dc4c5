// An endless query string.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const query = new URLSearchParams();
    for (let i = 0; ; i++) query.append("k", "v".repeat(1000) + i);
  },
};
