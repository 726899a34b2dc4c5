// Dispatches a fetch event of its own.
// expect: answer false
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const calls = [];
    addEventListener("fetch", (event) => {
      calls.push(event.isTrusted);
      event.respondWith(new Response("inner"));
    });
    try {
      dispatchEvent(new FetchEvent("fetch", { request: new Request("http://x/") }));
    } catch (error) {
      calls.push(error.name);
    }
    return new Response(String(calls.includes(true)));
  },
};
