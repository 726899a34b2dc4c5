// Calls itself until the stack is full.
// expect: answer RangeError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let depth = 0;
    const deeper = () => {
      depth++;
      deeper();
    };
    try {
      deeper();
    } catch (error) {
      return new Response(error.name);
    }
  },
};
