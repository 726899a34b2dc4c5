// A proxy trap that does not return, triggered by the platform.
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
