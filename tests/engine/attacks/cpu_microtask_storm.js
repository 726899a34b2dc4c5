// Microtasks that make microtasks: the event loop never gets its turn.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const again = () => queueMicrotask(again);
    again();
    await new Promise(() => {});
  },
};
