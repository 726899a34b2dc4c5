// Clones an object with a getter that does not return.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    structuredClone({
      get x() {
        for (;;);
      },
    });
  },
};
