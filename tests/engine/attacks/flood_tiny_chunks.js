// A body in twenty thousand pieces.
// expect: length 20000
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let left = 20000;
    return new Response(new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(1));
        if (--left === 0) controller.close();
      },
    }));
  },
};
