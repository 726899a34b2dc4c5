export default {
  fetch(request) {
    const url = new URL(request.url);
    if (url.pathname !== "/api/hello") return Response.json({ error: "not found" }, { status: 404 });
    return Response.json({ message: "Hello World!", agent: request.headers.get("user-agent"), query: url.search });
  },
};
