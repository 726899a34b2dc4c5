// Error.stackTraceLimit and captureStackTrace on internal objects.
// expect: answer string
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    Error.stackTraceLimit = Infinity;
    const trap = {};
    Error.captureStackTrace(request);
    Error.captureStackTrace(trap);
    return new Response(typeof trap.stack);
  },
};
