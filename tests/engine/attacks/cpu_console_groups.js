// A string of many lines inside many console groups.
// expect: answer ok or cpu
// limits: cpu_ms=500
// peak: 300
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; i < 2000; i++) console.group();
    console.log("\n".repeat(200_000));
    console.log("\n".repeat(100_000_000));
    return new Response("ok");
  },
};
