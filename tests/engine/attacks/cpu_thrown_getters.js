// Throws an error that loops when it is read.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    throw Object.defineProperty(new Error("x"), "stack", {
      get() {
        for (;;);
      },
    });
  },
};
