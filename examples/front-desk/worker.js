// Calls another worker of this node, ../greeter, by a method and by fetch. No socket is used.
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/raw") return env.GREETER.fetch("http://greeter/desk");
    return new Response(`${await env.GREETER.greet(pathname.slice(1) || "guest")} Welcome.\n`);
  },
};
