// A trap of a proxy that does not return, sprung by the platform.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const trap = new Proxy({}, {
      ownKeys() {
        for (;;);
      },
    });
    return new Response("x", { headers: trap });
  },
};
