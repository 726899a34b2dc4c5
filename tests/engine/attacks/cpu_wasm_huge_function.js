// Makes V8 optimise a function of two megabytes, on its own thread and without a time limit.
// expect: answer CompileError: WebAssembly.Module(): the module has a function of more than 512 KB.
// limits: cpu_ms=2000
// switches: allow_wasm_compile
// peak: 150
const number = (n) => [(n & 127) | 128, ((n >> 7) & 127) | 128, ((n >> 14) & 127) | 128, (n >> 21) & 127];
const section = (id, bytes) => [id, ...number(bytes.length)].concat(bytes);
const step = [32, 0, 65, 3, 106, 65, 5, 108, 33, 0, 32, 0, 65, 7, 113, 4, 64, 32, 0, 65, 1, 106, 33, 0, 11];
export default {
  async fetch(request, env, ctx) {
    let body = [0];
    for (let i = 0; i < 80_000; i++) body.push(...step);
    body = body.concat([32, 0, 11]);
    const module = [0, 97, 115, 109, 1, 0, 0, 0].concat(section(1, [1, 96, 1, 127, 1, 127]), section(3, [1, 0]), section(7, [1, 1, 102, 0, 0]),
      section(10, [1, ...number(body.length)].concat(body)));
    try {
      const { instance } = await WebAssembly.instantiate(Uint8Array.from(module));
      for (let i = 0; i < 100; i++) instance.exports.f(i);
      return new Response("compiled");
    } catch (error) {
      return new Response(`${error}`);
    }
  },
};
