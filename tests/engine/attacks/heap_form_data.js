// A form with endless fields.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const form = new FormData();
    for (let i = 0; ; i++) form.append("field", "x".repeat(1000) + i);
  },
};
