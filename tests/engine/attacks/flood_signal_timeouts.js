// More timers than allowed, made with AbortSignal.timeout.
// expect: exception Too many timers
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(AbortSignal.timeout(1e9));
  },
};
