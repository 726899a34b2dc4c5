// A built-in function that ignores the interrupt when memory runs out, in a worker that may compute for long.
// expect: memory
// engine: replaced
// limits: cpu_ms=15000 memory_mb=64
export default {
  async fetch(request, env, ctx) {
    const text = `[${"[],".repeat(2e7)}[]]`;
    return new Response(JSON.parse(text).length);
  },
};
