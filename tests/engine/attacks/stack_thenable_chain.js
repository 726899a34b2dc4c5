// A promise for a promise for a promise …
// expect: answer 1
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let value = Promise.resolve(1);
    for (let i = 0; i < 1e5; i++) {
      const inner = value;
      value = { then: (resolve) => resolve(inner) };
    }
    return new Response(String(await value));
  },
};
