// A hundred thousand unhandled rejections.
// expect: answer ok or cpu
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; i < 1e5; i++) Promise.reject(i);
    await new Promise((resolve) => setTimeout(resolve, 1));
    return new Response("ok");
  },
};
