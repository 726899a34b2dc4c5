// One WebAssembly memory that grows.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const memory = new WebAssembly.Memory({ initial: 1 });
    for (;;) {
      memory.grow(64);
      new Uint8Array(memory.buffer).fill(1);
    }
  },
};
