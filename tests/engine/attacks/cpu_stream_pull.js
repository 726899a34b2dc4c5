// A stream that produces chunks as fast as it can and never ends.
// expect: broken
// outcome: exceededCpu
export default {
  async fetch(request, env, ctx) {
    return new Response(new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(10));
      },
    }));
  },
};
