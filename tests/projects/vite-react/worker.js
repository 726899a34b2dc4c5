export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/greeting") return Response.json({ text: "Hello from the worker" });
    return new Response("not found", { status: 404 });
  },
};
