// Catches every error, including its own termination, and continues.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    for (;;) {
      try {
        for (;;);
      } catch {
        continue;
      } finally {
        for (;;);
      }
    }
  },
};
