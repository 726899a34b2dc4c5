// Logs an object of a hundred thousand levels.
// expect: answer shown
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let value = null;
    for (let i = 0; i < 1e5; i++) value = { value };
    console.info(value);
    console.info("%o", value);
    return new Response("shown");
  },
};
