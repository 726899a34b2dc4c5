// A regular expression with exponential backtracking.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    return new Response(String(/^(a+)+$/.test("a".repeat(40) + "!")));
  },
};
