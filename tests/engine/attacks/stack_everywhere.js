// Overflows the stack inside every operation that keeps state, and then continues to use it.
// expect: answer RangeError, and then ok
// limits: cpu_ms=5000
export default {
  async fetch(request, env, ctx) {
    const seen = new Set();
    const acts = [
      () => setTimeout(() => {}, 0),
      () => env.ECHO.say("x").catch(() => {}),
      () => ctx.waitUntil(Promise.resolve()),
      () => console.log("x"),
      () => structuredClone({ a: 1 }),
      () => new Response(new ReadableStream({ pull: (c) => c.close() })).text().catch(() => {}),
      () => fetch("http://127.0.0.1/").catch(() => {}),
      () => caches.default.match("http://x/").catch(() => {}),
      () => new AbortController().abort(),
      () => new WebSocketPair(),
      () => new MessageChannel().port1.postMessage(1),
      () => crypto.subtle.digest("SHA-1", new Uint8Array(1)).catch(() => {}),
    ];
    const deeper = (depth) => {
      try {
        deeper(depth + 1);
      } catch (error) {
        seen.add(error.name);
      }
      for (const act of depth % 50 === 0 ? acts : []) {
        try {
          act();
        } catch (error) {
          seen.add(error.name);
        }
      }
    };
    deeper(0);
    await new Promise((resolve) => setTimeout(resolve, 1));
    const after = await env.ECHO.say("ok");
    return new Response(`${[...seen]}, and then ${after}`);
  },
};
