// Thousands of operations are begun and never waited for; their calls are over before any is answered.
// expect: answer gone or exception
// limits: cpu_ms=2000
// times: 20
export default {
  fetch(request, env) {
    for (let i = 0; i < 900; i++) env.ECHO.wait(10_000).catch(() => {});
    return new Response("gone");
  },
};
