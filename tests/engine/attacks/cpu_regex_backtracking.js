// A regular expression that takes until the end of the universe.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    return new Response(String(/^(a+)+$/.test("a".repeat(40) + "!")));
  },
};
