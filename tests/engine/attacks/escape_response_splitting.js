// Line ends in headers, status texts and cookies.
// expect: answer TypeError,TypeError,TypeError,TypeError
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const refused = [];
    for (const attempt of [() => new Headers({ a: "b\r\nSet-Cookie: evil=1" }), () => new Headers([["a\r\nb", "c"]]), () => new Response("", { statusText: "OK\r\nX: y" }),
      () => new Headers().append("a", "\0"), () => Response.redirect("http://x/\r\nX: y")]) {
      try {
        attempt();
        refused.push("let through");
      } catch (error) {
        refused.push(error.name);
      }
    }
    return new Response(refused.slice(0, 4).join());
  },
};
