// setImmediate for ever.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const again = () => setImmediate(again);
    again();
    await new Promise(() => {});
  },
};
