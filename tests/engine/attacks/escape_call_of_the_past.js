// Code that a call has left behind goes on while a later call runs that Python gave the same number.
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
    // as it should be
  }
}
export default {
  async fetch(request, env, ctx) {
    for (const wake of left.splice(0)) wake(); // the promises of the call before
    await new Promise((resolve) => setTimeout(resolve, 20));
    new Promise((resolve) => left.push(resolve)).then(() => haunt(env, "promise"));
    crypto.subtle.digest("SHA-256", new Uint8Array(4e6)).then(() => haunt(env, "job"));
    return new Response(done.join());
  },
};
