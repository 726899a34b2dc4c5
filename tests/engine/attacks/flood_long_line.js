// One line of log of two hundred megabytes.
// expect: answer said
// truncated: yes
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    console.info("x".repeat(2e8));
    return new Response("said");
  },
};
