// Keeps a little more memory after every call.
// expect: leak
// times: 12
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    (globalThis.kept ??= []).push(new Array(1e6).fill(1.5));
    return new Response("ok");
  },
};
