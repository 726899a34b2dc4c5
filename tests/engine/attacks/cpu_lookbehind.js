// Backtracks in a lookbehind.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    return new Response(String(/(?<=^(a+)+)b/.test(`${"a".repeat(40)}!`) || /^(?:a+)+$/.test(`${"a".repeat(40)}!`)));
  },
};
