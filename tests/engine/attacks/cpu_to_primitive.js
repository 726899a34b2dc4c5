// Nested hooks that the language itself calls.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const hook = {
      [Symbol.toPrimitive]() {
        return hook + "";
      },
    };
    for (;;) {
      try {
        hook + "";
      } catch {
        continue;
      }
    }
  },
};
