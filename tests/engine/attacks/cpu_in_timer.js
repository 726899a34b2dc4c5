// A timer that does not return.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    setTimeout(() => {
      for (;;);
    }, 1);
    await new Promise(() => {});
  },
};
