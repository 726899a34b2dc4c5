// Leaves a thousand ops behind and computes at each reply.
// expect: answer begun or answer ran: 0
// times: 2
const burn = () => {
  for (let i = 0; i < 1e6; i++) Math.sqrt(i);
  globalThis.ran = (globalThis.ran ?? 0) + 1;
};
export default {
  async fetch(request, env, ctx) {
    if (globalThis.begun) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      return new Response(`ran: ${globalThis.ran ?? 0}`);
    }
    globalThis.begun = true;
    for (let i = 0; i < 1000; i++) env.ECHO.say({ i }).then(burn);
    return new Response("begun");
  },
};
