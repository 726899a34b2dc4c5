// Throws values that are not errors and cannot be read.
// expect: exception
// times: 8
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const kinds = [null, undefined, Symbol("x"), 5n, Object.create(null), new Proxy({}, { get() { throw 1; } }), () => {}, new (class extends Error { get message() { throw 1; } })()];
    throw kinds[(globalThis.n = (globalThis.n ?? -1) + 1) % kinds.length];
  },
};
