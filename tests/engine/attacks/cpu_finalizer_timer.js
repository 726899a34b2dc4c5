// A finalizer sets an interval: it belongs to no call, and no call ends it.
// expect: answer begun or answer few
// limits: memory_mb=32
// times: 2
let begun = false;
let ran = 0;
const burn = () => {
  ran++;
  for (let i = 0; i < 5e7; i++); // some ten milliseconds
};
const registry = new FinalizationRegistry(() => {
  if (!begun) setInterval(burn, 1);
  begun = true;
});
export default {
  async fetch(request, env, ctx) {
    if (!begun) {
      for (let i = 0; i < 100; i++) registry.register({}, 0);
      for (let i = 0; i < 300 && !begun; i++) {
        new Array(1e5).fill(1.5);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return new Response("begun");
    }
    const before = ran;
    await new Promise((resolve) => setTimeout(resolve, 2000));
    return new Response(ran === before ? "none" : ran - before < 50 ? "few" : `${ran - before} in two seconds`);
  },
};
