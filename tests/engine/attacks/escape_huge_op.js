// Sends a binding an op that is larger than a frame.
// expect: answer RangeError,RangeError
// limits: cpu_ms=2000
export default {
  async fetch(request, env, ctx) {
    const names = [];
    const large = "x".repeat(3e6);
    for (const attempt of [() => env.ECHO.say(large), () => env.ECHO.sayBytes(new Uint8Array(7e7))]) {
      try {
        await attempt();
        names.push("done");
      } catch (error) {
        names.push(error.name);
      }
    }
    return new Response(names.join());
  },
};
