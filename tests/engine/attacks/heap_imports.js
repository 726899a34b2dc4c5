// Endless imports of files that do not exist.
// expect: memory
// limits: cpu_ms=20000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; ; i++) import(`./nowhere${i}.js`).catch(() => {});
  },
};
