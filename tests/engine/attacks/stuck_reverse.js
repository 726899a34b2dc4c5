// reverse of an array that has only holes.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    new Array(2 ** 32 - 1).reverse();
    return new Response();
  },
};
