// Responds with endless headers.
// expect: exception longer than 128 KB
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const headers = new Headers();
    for (let i = 0; i < 5000; i++) headers.append(`x-${i}`, "y".repeat(100));
    return new Response("x", { headers });
  },
};
