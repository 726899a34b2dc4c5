// Clones an object of a hundred thousand levels.
// expect: answer RangeError or DataCloneError or cloned
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let value = null;
    for (let i = 0; i < 1e5; i++) value = [value];
    try {
      structuredClone(value);
      return new Response("cloned");
    } catch (error) {
      return new Response(error.name);
    }
  },
};
