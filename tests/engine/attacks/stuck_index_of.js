// indexOf over a length far beyond the real elements.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    return new Response(String([].indexOf.call({ length: 2 ** 53 - 1 }, 1)));
  },
};
