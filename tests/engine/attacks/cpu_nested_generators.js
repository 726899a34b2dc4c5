// A thousand nested async generators.
// expect: cpu
// limits: cpu_ms=200 memory_mb=64
export default {
  async fetch(request, env, ctx) {
    async function* nested(depth) {
      if (depth > 0) yield* nested(depth - 1);
      for (;;) yield depth;
    }
    for await (const _ of nested(1000));
  },
};
