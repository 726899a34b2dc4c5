// WebAssembly memories that come with instances of a module.
// expect: memory
// limits: cpu_ms=5000 memory_mb=64
// switches: allow_wasm_compile
export default {
  async fetch(request, env, ctx) {
    const module = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 0, 0])); // one memory
    const all = [];
    for (;;) all.push(new WebAssembly.Instance(module), await WebAssembly.instantiate(module));
  },
};
