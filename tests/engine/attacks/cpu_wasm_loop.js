// A loop in WebAssembly.
// expect: cpu
// switches: allow_wasm_compile
export default {
  async fetch(request, env, ctx) {
    // (module (func (export "spin") (loop (br 0))))
    const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 8, 1, 4, 115, 112, 105, 110, 0, 0,
      10, 9, 1, 7, 0, 3, 64, 12, 0, 11, 11);
    const { instance } = await WebAssembly.instantiate(bytes);
    instance.exports.spin();
  },
};
