// Memory shared between threads, which V8 charges to no isolate: from a module, from the constructor, and from the class of its buffers.
// expect: answer refused counted counted or memory
// limits: cpu_ms=1500 memory_mb=64
// switches: allow_wasm_compile
const kept = [];

function madeUntilRefused(make) {
  const before = kept.length;
  try {
    while (kept.length - before < 64) kept.push(make());
  } catch {
    // expected
  }
  return kept.length - before;
}

export default {
  async fetch() {
    // (module (memory (export "m") 256 1024 shared))
    const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 6, 1, 3, 128, 2, 128, 8, 7, 5, 1, 1, 109, 2, 0);
    const modules = madeUntilRefused(() => new WebAssembly.Module(bytes));
    const Shared = new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true }).buffer.constructor;
    const buffers = madeUntilRefused(() => new Uint8Array(new Shared(4 << 20)).fill(1));
    kept.length = 0;
    const memories = madeUntilRefused(() => {
      const memory = new WebAssembly.Memory({ initial: 1, maximum: 64, shared: true });
      memory.grow(63);
      return new Uint8Array(memory.buffer).fill(1);
    });
    const isCounted = (count) => (count < 17 ? "counted" : count);
    return new Response(`${modules === 0 ? "refused" : modules} ${isCounted(buffers)} ${isCounted(memories)}`);
  },
};
