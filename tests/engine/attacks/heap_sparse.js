// An array that looks small but is large.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (let i = 0; ; i++) all[(i * 7919) % 4294967291] = { i };
  },
};
