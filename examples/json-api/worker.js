// A small JSON API: one route, and a 404 that lists the routes.
const routes = {
  "GET /api/hello": (request, url, env) => {
    const name = url.searchParams.get("name") ?? env.DEFAULT_NAME;
    return Response.json({ message: `Hello, ${name}!`, method: request.method, path: url.pathname });
  },
};

export default {
  fetch(request, env) {
    const url = new URL(request.url);
    const route = routes[`${request.method} ${url.pathname}`];
    if (route) return route(request, url, env);
    return Response.json({ error: "not found", routes: Object.keys(routes) }, { status: 404 });
  },
};
