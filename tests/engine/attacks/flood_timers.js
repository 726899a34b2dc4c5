// More timers than a call may have.
// expect: answer QuotaExceededError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    try {
      for (;;) setTimeout(() => {}, 20000);
    } catch (error) {
      return new Response(error.name);
    }
  },
};
