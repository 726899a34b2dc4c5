// A thousand digests at once.
// expect: answer ok or cpu or memory
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const one = new Uint8Array(100000);
    await Promise.all(Array.from({ length: 1000 }, () => crypto.subtle.digest("SHA-256", one)));
    return new Response("ok");
  },
};
