// Object URLs that are never revoked.
// expect: memory
// limits: cpu_ms=5000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    for (;;) URL.createObjectURL(new Blob([new Uint8Array(1e6)]));
  },
};
