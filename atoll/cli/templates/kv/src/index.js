// Counts the visits of each path. KV is for what is read often and written now and then: two visits at the very same
// moment may count as one.
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const visits = Number((await env.COUNTS.get(pathname)) ?? 0) + 1;
    await env.COUNTS.put(pathname, String(visits));
    return new Response(`${pathname} was visited ${visits} times\n`);
  },
};
