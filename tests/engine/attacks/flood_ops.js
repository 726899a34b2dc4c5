// Ten thousand ops at once.
// expect: answer 10000 or cpu
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const all = await Promise.allSettled(Array.from({ length: 10000 }, (_, i) => env.ECHO.say({ i })));
    return new Response(String(all.length));
  },
};
