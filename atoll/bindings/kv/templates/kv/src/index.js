// Counts the visits of each path. KV suits data that is read often and written rarely: two visits at the same moment
// may count as one.
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const visits = Number((await env.COUNTS.get(pathname)) ?? 0) + 1;
    await env.COUNTS.put(pathname, String(visits));
    return new Response(`${pathname} was visited ${visits} times\n`);
  },
};
