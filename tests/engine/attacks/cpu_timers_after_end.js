// Sets timers after its call has ended, and more timers from those.
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
    const again = () => {
      burn();
      setTimeout(again, 0);
    };
    env.ECHO.say({}).then(again);
    new Promise((resolve) => setTimeout(resolve, 1)).then(again);
    return new Response("begun");
  },
};
