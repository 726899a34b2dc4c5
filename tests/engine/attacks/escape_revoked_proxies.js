// Passes revoked proxies to the platform.
// expect: exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const revoked = () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    };
    for (const use of [() => new Headers(revoked()), () => new Response("x", revoked()), () => console.info(revoked()), () => structuredClone(revoked()), () => new URL(revoked()), () => setTimeout(revoked())]) {
      try {
        use();
      } catch {
        continue;
      }
    }
    return revoked();
  },
};
