// Keeps one large WebAssembly module after the other.
// expect: memory
// limits: cpu_ms=5000 memory_mb=32
// switches: allow_wasm_compile
// peak: 350
const number = (n) => [(n & 127) | 128, ((n >> 7) & 127) | 128, (n >> 14) & 127];
const section = (id, bytes) => [id, ...number(bytes.length), ...bytes];
// (func (param i32) (result i32) ...) that adds 3 again and again
const add = Array.from({ length: 1000 }, () => [32, 0, 65, 3, 106, 33, 0]).flat();
const body = [0, ...add, 32, 0, 11];
const one = [...number(body.length), ...body];
const count = 200;
const start = [0, 97, 115, 109, 1, 0, 0, 0, ...section(1, [1, 96, 1, 127, 1, 127]), ...section(3, [...number(count), ...new Array(count).fill(0)])];
const code = [...number(count)];
for (let i = 0; i < count; i++) code.push(...one);
const module = Uint8Array.from(start.concat([10, ...number(code.length)], code));
const unlike = (i) => {
  module[module.length - 7] = i & 63; // adds another number each time: V8 remembers the modules it has compiled
  module[module.length - 14] = (i >> 6) & 63;
  return module;
};
const kept = [];
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; ; i++) kept.push(new WebAssembly.Module(unlike(i)));
  },
};
