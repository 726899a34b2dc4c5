// An asynchronous generator without end.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    async function* forever() {
      for (;;) yield 1;
    }
    let sum = 0;
    for await (const one of forever()) sum += one;
    return new Response(String(sum));
  },
};
