// Ten megabytes of zeros, compressed to a thousandth.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const zeros = new Blob([new Uint8Array(1e7)]).stream().pipeThrough(new CompressionStream("gzip"));
    const small = await new Response(zeros).arrayBuffer();
    const all = [];
    for (;;) all.push(await new Response(new Blob([small]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  },
};
