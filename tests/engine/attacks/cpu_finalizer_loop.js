// A finalizer that makes more work for finalizers, and then does not return.
// expect: cpu
// limits: memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const registry = new FinalizationRegistry(() => {
      for (let i = 0; i < 100; i++) registry.register({}, i);
      for (;;);
    });
    for (let i = 0; i < 1e5; i++) registry.register({}, i);
    for (let i = 0; i < 100; i++) {
      new Uint8Array(1e6);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
};
