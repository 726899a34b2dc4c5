// Reads one branch of a tee; the other branch buffers everything.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const source = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(100000)),
    });
    const [read, kept] = source.tee();
    globalThis.kept = kept;
    for await (const chunk of read) if (chunk.length === 0) break;
  },
};
