// Normalizes a hundred million characters in one call.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    "\u1e9b\u0323".repeat(5e7).normalize("NFKD");
  },
};
