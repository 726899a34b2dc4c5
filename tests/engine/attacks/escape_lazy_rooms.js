// Tampers with the language before the lazy modules of the platform are loaded.
// expect: answer natives reached: false or exception
// limits: cpu_ms=5000
export default {
  async fetch(request, env, ctx) {
    let leaked = 0;
    const isNative = (value) => [value, value?.native].some((each) => typeof each?.sendBody === "function" || typeof each?.weighMemory === "function");
    const { apply } = Reflect;
    const tamper = (object, name) => {
      const original = object[name];
      object[name] = function (...given) {
        if (isNative(this) || given.some(isNative)) leaked++;
        return apply(original, this, given);
      };
    };
    for (const [object, names] of [
      [Function.prototype, ["call", "apply", "bind"]],
      [Map.prototype, ["get", "set", "has", "delete"]],
      [WeakMap.prototype, ["get", "set", "has"]],
      [Array.prototype, ["push", "map", "forEach", "includes", "join"]],
      [Object, ["defineProperty", "defineProperties", "assign", "freeze", "create", "setPrototypeOf", "entries", "keys", "getOwnPropertyNames", "getOwnPropertyDescriptor", "getPrototypeOf"]],
      [Reflect, ["apply", "construct", "get", "ownKeys", "defineProperty"]],
      [Set.prototype, ["add", "has"]],
      [WeakSet.prototype, ["add", "has"]],
    ]) {
      for (const name of names) tamper(object, name);
    }
    Object.defineProperty(Object.prototype, "weighMemory", { set: () => leaked++, get: () => undefined, configurable: true });
    const attempts = [
      () => new URLPattern({ pathname: "/:a" }).test("http://x/b"),
      () => new MessageChannel().port1.postMessage(1),
      () => new WebAssembly.Memory({ initial: 1 }),
      () => new BroadcastChannel("x").close(),
      () => new EventSource("http://x/").close(),
      ...["crypto", "stream", "util", "zlib", "events", "buffer", "assert", "url", "path", "async_hooks"].map((name) => () => import(`node:${name}`)),
    ];
    for (const attempt of attempts) {
      try {
        await attempt();
      } catch {
        // the worker only breaks itself
      }
    }
    return new Response(`natives reached: ${leaked > 0}`);
  },
};
