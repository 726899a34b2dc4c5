// A getter that does not return, read by the platform.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    return new Response("x", {
      get status() {
        for (;;);
      },
    });
  },
};
