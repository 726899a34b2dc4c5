// A conversion to a string that does not return.
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
