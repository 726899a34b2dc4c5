// Answers from the cache if possible. Otherwise it creates the response, which takes a while, and caches it for ten seconds.
export default {
  async fetch(request, env, ctx) {
    const cache = caches.default;
    const hit = await cache.match(request);
    if (hit !== undefined) return hit;
    const response = await makeReport(request.url);
    ctx.waitUntil(cache.put(request, response.clone()));
    return response;
  },
};

async function makeReport(url) {
  await scheduler.wait(300);
  return new Response(`report of ${url}, made at ${new Date().toISOString()}\n`, {
    headers: { "cache-control": "max-age=10", etag: `"${crypto.randomUUID()}"` },
  });
}
