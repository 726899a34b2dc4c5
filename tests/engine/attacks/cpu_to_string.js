// A conversion to text that does not return.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    return new Response("x", {
      statusText: {
        toString() {
          for (;;);
        },
      },
    });
  },
};
