// Uses its time in many short turns.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    for (;;) {
      for (let i = 0; i < 1e5; i++) Math.sqrt(i);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  },
};
