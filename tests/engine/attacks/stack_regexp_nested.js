// A pattern with a hundred thousand brackets.
// expect: answer SyntaxError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    try {
      new RegExp("(".repeat(1e5) + ")".repeat(1e5));
      return new Response("compiled");
    } catch (error) {
      return new Response(error.name);
    }
  },
};
