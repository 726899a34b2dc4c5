// A built-in function that hears nothing when its memory is used up, of a worker that may compute for long.
// expect: memory
// engine: replaced
// limits: cpu_ms=15000 memory_mb=64
export default {
  async fetch(request, env, ctx) {
    const text = `[${"[],".repeat(2e7)}[]]`;
    return new Response(JSON.parse(text).length);
  },
};
