// Fills the stack just before it calls the platform.
// expect: answer RangeError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const seen = new Set();
    const deeper = () => {
      try {
        deeper();
      } catch (error) {
        seen.add(error.name);
      }
      try {
        new URL("http://x/");
        new Request("http://x/").headers.get("a");
        new TextEncoder().encode("x");
      } catch (error) {
        seen.add(error.name);
      }
    };
    try {
      deeper();
    } catch (error) {
      seen.add(error.name);
    }
    return new Response([...seen].join());
  },
};
