// Ten thousand responses, one of them sent.
// expect: answer 9999
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    let last;
    for (let i = 0; i < 1e4; i++) last = new Response(`${i}`);
    return last;
  },
};
