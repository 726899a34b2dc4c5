// forEach over more holes than there are.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    [].forEach.call({ length: 2 ** 53 - 1 }, () => {});
    return new Response();
  },
};
