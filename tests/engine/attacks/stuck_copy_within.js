// copyWithin over a length far beyond the real elements.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    [].copyWithin.call({ length: 2 ** 53 - 1 }, 1, 0);
    return new Response();
  },
};
