// A weak map whose keys stay alive.
// expect: memory
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const keys = [];
    const weak = new WeakMap();
    for (;;) {
      const key = {};
      keys.push(key);
      weak.set(key, new Array(100));
    }
  },
};
