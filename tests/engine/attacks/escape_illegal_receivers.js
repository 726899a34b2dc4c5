// Calls every method and getter of every platform class on objects of every other class.
// expect: answer survived or exception or cpu
// limits: cpu_ms=10000
export default {
  async fetch(request, env, ctx) {
    const receivers = [request, request.headers, env.ECHO, ctx, new Response("x"), new Response("x").body, new URL("http://a"), new Blob(["x"]), new FormData(), new AbortController(), new TransformStream(), new WebSocketPair(), new TextDecoder(), new Event("x"), crypto, caches.default, {}, null, undefined, 1, Object.create(Request.prototype), new Proxy(request, {}), globalThis];
    const skip = new Set(["close", "eval", "Function", "setTimeout", "setInterval"]);
    const odd = [undefined, null, -1, NaN, "x", {}, [], () => {}, Symbol("x"), 1n, request];
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      const owner = globalThis[name];
      if (typeof owner !== "function" || skip.has(name) || !owner.prototype || /^(Array|String|RegExp|Function|GeneratorFunction|BigInt)/.test(name)) continue;
      for (const key of Reflect.ownKeys(owner.prototype)) {
        const { get, set, value } = Object.getOwnPropertyDescriptor(owner.prototype, key);
        for (const method of [get, set, value]) {
          if (typeof method !== "function" || method === owner) continue;
          for (const receiver of receivers) {
            try {
              const result = method.call(receiver, odd[key.length % odd.length], odd[(key.length + 3) % odd.length]);
              result?.catch?.(() => {});
            } catch {
              continue;
            }
          }
        }
      }
    }
    return new Response("survived");
  },
};
