// String.raw with a thousand million pieces.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    String.raw({ raw: { length: 1e9 } });
    return new Response();
  },
};
