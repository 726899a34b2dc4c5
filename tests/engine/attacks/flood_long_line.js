// One console line of a hundred megabytes.
// expect: answer said
// truncated: yes
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    console.info("x".repeat(1e8));
    return new Response("said");
  },
};
