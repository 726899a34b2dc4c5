// Requests much data from a binding and reads none of it.
// expect: cpu
// limits: cpu_ms=1500 memory_mb=32
// bindings: kv
// peak: 350
export default {
  async fetch(request, env, ctx) {
    await env.KV.put("large", new Uint8Array(10e6));
    for (let i = 0; i < 60; i++) env.KV.get("large", "arrayBuffer").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 1));
    for (;;);
  },
};
