// A value that loops when the console inspects it.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    console.info({
      get [Symbol.toStringTag]() {
        for (;;);
      },
    });
    return new Response("ok");
  },
};
