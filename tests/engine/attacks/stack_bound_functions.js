// A function bound a hundred thousand times.
// expect: answer RangeError or 1
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let run = () => 1;
    for (let i = 0; i < 1e5; i++) run = run.bind(null);
    try {
      return new Response(String(run()));
    } catch (error) {
      return new Response(error.name);
    }
  },
};
