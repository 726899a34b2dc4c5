// Buffers that grow without a call to the allocator.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) {
      const buffer = new ArrayBuffer(1, { maxByteLength: 2 ** 26 });
      buffer.resize(2 ** 26);
      new Uint8Array(buffer).fill(1);
      all.push(buffer);
    }
  },
};
