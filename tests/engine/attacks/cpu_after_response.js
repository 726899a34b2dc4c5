// Answers first, and loops in waitUntil.
// expect: answer ok
// outcome: exceededCpu
export default {
  async fetch(request, env, ctx) {
    ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 1)).then(() => {
      for (;;);
    }));
    return new Response("ok");
  },
};
