// A generator without end, iterated by a built-in.
// expect: cpu or memory
export default {
  async fetch(request, env, ctx) {
    function* forever() {
      for (;;) yield 1;
    }
    return new Response(String(Math.max(...forever())));
  },
};
