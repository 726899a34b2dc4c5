// JSON of twenty million arrays.
// expect: cpu or memory
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    const text = "[" + "[],".repeat(2e7) + "[]]";
    JSON.parse(text);
    return new Response();
  },
};
