// The plainest of all.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    for (;;);
  },
};
