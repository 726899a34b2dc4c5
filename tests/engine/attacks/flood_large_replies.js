// Reads six times its memory limit from a binding at once, and keeps all of it.
// expect: answer some do not fit or memory
// limits: cpu_ms=20000 memory_mb=32 wall_ms=60000
// bindings: kv
// peak: 350
export default {
  async fetch(request, env, ctx) {
    await env.KV.put("large", new Uint8Array(10e6));
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => env.KV.get("large", "arrayBuffer")));
    return new Response(all.some((one) => one.reason instanceof RangeError) ? "some do not fit" : "taken");
  },
};
