// reverse of an array of nothing but holes.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    new Array(2 ** 32 - 1).reverse();
    return new Response();
  },
};
