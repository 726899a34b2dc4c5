// Fills the stack again in every catch.
// expect: cpu or exception
// limits: cpu_ms=100
export default {
  async fetch(request, env, ctx) {
    const deeper = () => {
      try {
        deeper();
      } catch {
        deeper();
      }
    };
    deeper();
  },
};
