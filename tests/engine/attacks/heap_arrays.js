// Arrays of arrays.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(new Array(1000).fill(all.length));
  },
};
