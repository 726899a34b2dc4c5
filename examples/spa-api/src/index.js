// Only /api/* comes here: the node serves every other path from public/ by itself.
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/time") return Response.json({ time: new Date().toISOString() });
    if (pathname === "/api/page") {
      const page = await env.ASSETS.fetch(new URL("/", request.url));
      return Response.json({ status: page.status, characters: (await page.text()).length });
    }
    return Response.json({ error: "not found" }, { status: 404 });
  },
};
