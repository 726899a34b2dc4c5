// A constructor that built-in methods call through Symbol.species.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    class Slow extends Array {
      static get [Symbol.species]() {
        for (;;);
      }
    }
    return new Response(String(new Slow(1, 2, 3).map((x) => x)));
  },
};
