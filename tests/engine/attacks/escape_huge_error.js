// Throws an error of eighty megabytes.
// expect: exception xxxxxxxx
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    throw new Error("x".repeat(8e7));
  },
};
