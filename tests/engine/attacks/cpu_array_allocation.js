// A loop that V8's optimiser may compile without interrupt checks.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    let x;
    for (;;) x = new Array(1000);
    return new Response(String(x));
  },
};
