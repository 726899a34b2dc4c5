// forEach over a length of holes.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    [].forEach.call({ length: 2 ** 53 - 1 }, () => {});
    return new Response();
  },
};
