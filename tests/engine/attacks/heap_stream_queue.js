// A stream that is filled and never read.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const stream = new ReadableStream({
      start(controller) {
        for (;;) controller.enqueue(new Uint8Array(10000));
      },
    });
    return new Response(stream);
  },
};
