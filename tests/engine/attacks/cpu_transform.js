// A transformer that does not return.
// expect: broken
// outcome: exceededCpu
export default {
  async fetch(request, env, ctx) {
    const { readable, writable } = new TransformStream({
      transform() {
        for (;;);
      },
    });
    const writer = writable.getWriter();
    writer.write("x").catch(() => {});
    return new Response(readable);
  },
};
