// Freezes every reachable object before the platform next writes to it.
// expect: answer frozen or exception or internal
// limits: cpu_ms=2000
// times: 3
export default {
  async fetch(request, env) {
    const seen = new Set();
    const freeze = (object, depth) => {
      if (depth > 4 || object === null || (typeof object !== "object" && typeof object !== "function") || seen.has(object)) return;
      seen.add(object);
      for (const key of Reflect.ownKeys(object)) {
        try {
          freeze(object[key], depth + 1);
        } catch {
          continue;
        }
      }
      try {
        Object.freeze(object);
      } catch {
        return;
      }
    };
    freeze(globalThis, 0);
    freeze(request, 0);
    console.log("still");
    await env.ECHO.say({ a: 1 }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 1));
    return new Response("frozen", { headers: { a: "b" } });
  },
};
