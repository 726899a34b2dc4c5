// More timers than allowed, made with AbortSignal.timeout.
// expect: exception You have exceeded the number of active timeouts
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(AbortSignal.timeout(1e9));
  },
};
