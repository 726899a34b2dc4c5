// A comparison function that keeps a sort busy.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const list = Array.from({ length: 3e5 }, (_, i) => i);
    for (;;) list.sort(() => (globalThis.flip = !globalThis.flip) ? 1 : -1);
  },
};
