// A hundred thousand empty console lines.
// expect: answer said
// truncated: yes
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; i < 1e5; i++) console.info("");
    return new Response("said");
  },
};
