// Blobs of blobs.
// expect: memory or exception
// limits: cpu_ms=1500 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    let blob = new Blob(["x".repeat(1e6)]);
    const all = [];
    for (;;) {
      blob = new Blob([blob, "y"]);
      all.push(await blob.text());
    }
  },
};
