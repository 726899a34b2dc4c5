// Ten thousand empty intervals.
// expect: cpu
// limits: cpu_ms=100
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; i < 9999; i++) setInterval(() => {}, 0);
    await new Promise(() => {});
  },
};
