export default {
  fetch(request) {
    const url = new URL(request.url);
    if (url.pathname !== "/api/items") return Response.json({ error: "not found" }, { status: 404 });
    const page = Number(url.searchParams.get("page") ?? 0);
    const name = url.searchParams.get("name") ?? "item";
    const items = [];
    for (let n = 0; n < 10; n++) items.push({ id: page * 10 + n, name: `${name} ${n}`, price: (page * 10 + n) * 1.5, tags: ["a", "b"] });
    return Response.json({ page, agent: request.headers.get("user-agent"), items });
  },
};
