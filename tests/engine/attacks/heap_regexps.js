// Many different regular expressions.
// expect: memory or cpu
// limits: cpu_ms=500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (let i = 0; ; i++) {
      const one = new RegExp(`a${i}(b|c)*`);
      one.test("abc");
      all.push(one);
    }
  },
};
