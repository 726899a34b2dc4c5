// A Proxy that pretends to be a Response.
// expect: exception The fetch handler returned
export default {
  async fetch(request, env, ctx) {
    return new Proxy(new Response("x"), { get: (_, name) => (name === "then" ? undefined : () => "x") });
  },
};
