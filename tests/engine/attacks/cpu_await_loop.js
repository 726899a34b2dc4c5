// A loop that awaits what is there already.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    for (;;) await 0;
  },
};
