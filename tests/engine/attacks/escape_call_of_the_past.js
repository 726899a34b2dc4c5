// Code that a call left behind continues while a later call with the same id runs.
// expect: answer
// times: 30
// limits: cpu_ms=2000
const left = [];
const done = [];
async function haunt(env, way) {
  setTimeout(() => done.push(`${way}: timer`), 1);
  try {
    await env.ECHO.say({ way });
    done.push(`${way}: op`);
  } catch {
    // expected
  }
}
export default {
  async fetch(request, env, ctx) {
    for (const wake of left.splice(0)) wake(); // resolves promises of the previous call
    await new Promise((resolve) => setTimeout(resolve, 20));
    new Promise((resolve) => left.push(resolve)).then(() => haunt(env, "promise"));
    crypto.subtle.digest("SHA-256", new Uint8Array(4e6)).then(() => haunt(env, "job"));
    return new Response(done.join());
  },
};
