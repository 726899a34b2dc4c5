// A body of eight megabytes in one piece.
// expect: length 8388608
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    return new Response("x".repeat(8 << 20));
  },
};
