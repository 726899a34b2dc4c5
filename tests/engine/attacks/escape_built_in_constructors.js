// Reaches the constructors of internal classes through every object that a call receives, and calls them without their checks.
// expect: answer nothing
// limits: cpu_ms=3000
export default {
  async fetch(request, env, ctx) {
    const roots = [request, request.headers, request.signal, request.cf, env, env.ECHO, ctx, new URL(request.url).searchParams, caches, crypto.subtle, performance, navigator, scheduler, console, new WebSocketPair()[0], new Response("x").body];
    const seen = new Set();
    const found = [];
    const walk = (object, depth) => {
      if (depth > 6 || object === null || (typeof object !== "object" && typeof object !== "function") || seen.has(object)) return;
      seen.add(object);
      for (const key of Reflect.ownKeys(object)) {
        let value;
        try {
          value = Object.getOwnPropertyDescriptor(object, key).value ?? object[key];
        } catch {
          continue;
        }
        if (/native|binding|require|mainModule|dlopen|internal/i.test(String(key)) && typeof value === "function" && !/isNative|internalSlots/.test(String(key))) {
          try {
            value.call(object, "fs"); // members of `process` that Cloudflare has too only throw
            found.push(String(key));
          } catch {}
        }
        walk(value, depth + 1);
      }
      walk(Object.getPrototypeOf(object), depth + 1);
      if (typeof object === "function" && object.prototype) {
        for (const make of [() => Reflect.construct(object, []), () => Reflect.construct(Object, [], object), () => object.call({})]) {
          try {
            make();
          } catch {
            continue;
          }
        }
      }
    };
    globalThis.process ??= {};
    for (const root of roots) walk(root, 0);
    walk(globalThis, 3);
    await new Promise((resolve) => setTimeout(resolve, 1));
    return new Response(found.length === 0 ? "nothing" : found.join(" "));
  },
};
