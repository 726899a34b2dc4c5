// An array of 134 million elements.
// expect: cpu or memory
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    new Array(2 ** 27).fill(0);
    return new Response();
  },
};
