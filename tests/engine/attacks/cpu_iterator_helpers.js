// Helpers of an iterator that never ends, and a filter that lets nothing through.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    function* ones() {
      for (;;) yield 1;
    }
    ones().map((x) => x).filter(() => false).toArray();
  },
};
