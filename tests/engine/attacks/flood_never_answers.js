// Waits for something that can never happen.
// expect: exception would never generate a response
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    await new Promise(() => {});
  },
};
