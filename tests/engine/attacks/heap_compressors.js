// Compressors of 256 KB each, none of which is ever read.
// expect: memory
// limits: cpu_ms=5000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) {
      const stream = new CompressionStream("gzip");
      stream.writable.getWriter().write(new Uint8Array(10));
      all.push(stream);
      if (all.length % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  },
};
