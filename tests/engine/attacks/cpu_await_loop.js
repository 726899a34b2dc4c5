// A loop that awaits values that are already available.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    for (;;) await 0;
  },
};
