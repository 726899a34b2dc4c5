// A proxy of a proxy of a proxy …
// expect: answer RangeError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let value = {};
    for (let i = 0; i < 1e5; i++) value = new Proxy(value, {});
    try {
      return new Response(String(value.x));
    } catch (error) {
      return new Response(error.name);
    }
  },
};
