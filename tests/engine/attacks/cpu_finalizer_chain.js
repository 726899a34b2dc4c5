// Finalizers that leave more garbage with finalizers, each using a little time, long after their call has ended.
// expect: answer begun or answer few or answer none
// limits: memory_mb=32
// times: 2
let ran = 0;
let sink = 0;
const registry = new FinalizationRegistry(burn);
function leaveSome() {
  for (let i = 0; i < 2; i++) registry.register({ i }, 0);
}
function burn() {
  ran++;
  leaveSome();
  for (let i = 0; i < 1e6; i++) sink += i; // some milliseconds
  for (let i = 0; i < 40; i++) sink += new Uint8Array(1e6).length; // garbage, until V8 collects it
}
export default {
  async fetch(request, env, ctx) {
    if (ran === 0) {
      leaveSome();
      for (let i = 0; i < 300 && ran === 0; i++) {
        new Array(1e5).fill(1.5);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return new Response("begun");
    }
    const before = ran;
    await new Promise((resolve) => setTimeout(resolve, 2000));
    return new Response(ran === before ? "none" : ran - before < 50 ? "few" : `${ran - before} finalizers in two seconds`);
  },
};
