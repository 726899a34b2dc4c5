// Replaces built-ins that the platform might call, to see their arguments.
// expect: answer natives reached: false or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    let leaked = 0;
    const seen = (...values) => {
      for (const value of values) if (typeof value?.respond === "function" || typeof value?.sendBody === "function" || typeof value?.op === "function") leaked++;
    };
    for (const [prototype, name] of [[Map.prototype, "get"], [Map.prototype, "delete"], [Array.prototype, "push"], [Function.prototype, "apply"], [Function.prototype, "call"],
      [Promise.prototype, "then"], [Reflect, "apply"], [Reflect, "get"], [JSON, "parse"], [Object, "defineProperty"], [Object, "keys"]]) {
      const original = prototype[name];
      const { apply } = Reflect;
      prototype[name] = function (...args) {
        seen(this, ...args);
        return apply(original, this, args);
      };
    }
    const stream = new Response(new ReadableStream({ start: (c) => c.close() }));
    await stream.text();
    await new Promise((resolve) => setTimeout(resolve, 1));
    return new Response(`natives reached: ${leaked > 0 && typeof globalThis.native !== "undefined"}`);
  },
};
