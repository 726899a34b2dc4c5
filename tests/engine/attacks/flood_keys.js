// Keys until there is no room for them.
// expect: exception or cpu or memory
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 8 << 20 }, true, ["sign"]));
  },
};
