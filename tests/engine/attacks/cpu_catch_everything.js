// Catches whatever ends it, and goes on.
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
