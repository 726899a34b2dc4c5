// Parses and writes JSON of a hundred thousand levels.
// expect: answer RangeError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const value = JSON.parse("[".repeat(1e5) + "]".repeat(1e5));
    try {
      return new Response(JSON.stringify(value).length > 0 ? "written" : "");
    } catch (error) {
      return new Response(error.name);
    }
  },
};
