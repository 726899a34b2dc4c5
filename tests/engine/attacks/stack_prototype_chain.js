// A chain of a hundred thousand prototypes.
// expect: answer undefined
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let value = {};
    for (let i = 0; i < 1e5; i++) value = Object.create(value);
    return new Response(String(value.x));
  },
};
