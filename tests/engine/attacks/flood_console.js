// A hundred megabytes of console output.
// expect: answer said
// truncated: yes
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const line = "x".repeat(10000);
    for (let i = 0; i < 10000; i++) console.info(line);
    return new Response("said");
  },
};
