// JSON nested in strings of JSON.
// expect: memory or exception
// engine: may be replaced
// limits: cpu_ms=5000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    let value = "x";
    for (;;) value = JSON.stringify([value, value, value]);
  },
};
