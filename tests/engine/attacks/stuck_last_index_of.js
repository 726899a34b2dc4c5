// lastIndexOf over a length far beyond the real elements.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    return new Response(String([].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)));
  },
};
