// The simplest endless loop.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    for (;;);
  },
};
