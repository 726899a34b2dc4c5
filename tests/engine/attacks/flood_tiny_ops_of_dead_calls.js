// Starts thousands of ops and never waits for them. The calls end before any reply.
// expect: answer gone or exception
// limits: cpu_ms=2000
// times: 20
export default {
  fetch(request, env) {
    for (let i = 0; i < 900; i++) env.ECHO.wait(10_000).catch(() => {});
    return new Response("gone");
  },
};
