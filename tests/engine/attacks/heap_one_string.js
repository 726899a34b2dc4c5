// One string that doubles.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    let text = "x";
    for (;;) {
      text += text;
      text.charCodeAt(5);
    }
  },
};
