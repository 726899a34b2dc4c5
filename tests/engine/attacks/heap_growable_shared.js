// Shared buffers that grow inside reserved pages, without a call to the allocator.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
// peak: 300
const Shared = new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true }).buffer.constructor;

export default {
  async fetch() {
    const all = [];
    for (;;) {
      const buffer = new Shared(1, { maxByteLength: 2 ** 26 });
      buffer.grow(2 ** 26);
      new Uint8Array(buffer).fill(1);
      all.push(buffer);
      if (all.length > 30) return new Response("escaped");
    }
  },
};
