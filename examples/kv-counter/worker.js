// Counts the visits of each path in a KV namespace, and lists them at /top.
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/top") return Response.json(await top(env.VISITS));
    const { value, metadata } = await env.VISITS.getWithMetadata(pathname);
    const count = Number(value) + 1;
    await env.VISITS.put(pathname, `${count}`, { metadata: { first: metadata?.first ?? new Date().toISOString() } });
    return new Response(`${pathname} was visited ${count} times\n`);
  },
};

async function top(visits) {
  const { keys } = await visits.list({ limit: 100 });
  const counts = await visits.get(keys.map((key) => key.name), "json");
  return keys.map(({ name, metadata }) => ({ path: name, visits: counts.get(name), first: metadata.first }));
}
