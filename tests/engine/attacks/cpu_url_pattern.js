// A URL pattern that backtracks.
// expect: cpu or exception
export default {
  async fetch(request, env, ctx) {
    const pattern = new URLPattern({ pathname: "/((a+)+)b" });
    return new Response(String(pattern.test({ pathname: "/" + "a".repeat(40) })));
  },
};
