// A map with objects as keys.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = new Map();
    for (let i = 0; ; i++) all.set({}, i);
  },
};
