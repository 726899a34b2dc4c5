// A reverse proxy: forwards every path except the root to env.ORIGIN and streams both bodies.
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/") return new Response(`This proxy leads to ${env.ORIGIN}: ask for any other path.\n`);

    const upstream = new Request(env.ORIGIN + url.pathname + url.search, request);
    upstream.headers.set("X-Forwarded-Host", url.host);
    try {
      const response = await fetch(upstream, { redirect: "manual" });
      const headers = new Headers(response.headers);
      headers.set("X-Proxied-By", "atoll");
      return new Response(response.body, { status: response.status, headers });
    } catch (error) {
      return new Response(`${error.message}\n`, { status: 502 });
    }
  },
};
