// Sends sixty values of twenty megabytes to a binding at once.
// expect: answer refused
// limits: cpu_ms=10000
// bindings: kv
// peak: 500
export default {
  async fetch(request, env, ctx) {
    const large = new Uint8Array(20e6);
    const all = await Promise.allSettled(Array.from({ length: 60 }, (_, i) => env.KV.put(`k${i}`, large)));
    return new Response(all.some((one) => one.reason instanceof RangeError) ? "refused" : "taken");
  },
};
