// Compiles WebAssembly from bytes.
// expect: answer CompileError,CompileError,CompileError,CompileError
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const empty = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
    const names = [];
    for (const way of [() => new WebAssembly.Module(empty), () => WebAssembly.compile(empty), () => WebAssembly.instantiate(empty),
      () => WebAssembly.compileStreaming(new Response(empty, { headers: { "content-type": "application/wasm" } }))]) {
      try {
        await way();
        names.push("compiled");
      } catch (error) {
        names.push(error.name);
      }
    }
    return new Response(names.join());
  },
};
