// Throws an error that loops when somebody reads it.
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
