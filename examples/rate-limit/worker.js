// Accepts five requests of each client in ten seconds, and reports its own version.
export default {
  async fetch(request, env) {
    const client = request.headers.get("x-client") ?? "anonymous";
    const { success } = await env.LIMITER.limit({ key: client });
    if (!success) return new Response(`${client} asks too often\n`, { status: 429, headers: { "retry-after": "10" } });
    return new Response(`hello ${client}, from version ${env.VERSION.id} of ${env.VERSION.timestamp}\n`);
  },
};
