// Replaces Symbol.species, hasInstance, toPrimitive, iterator, isConcatSpreadable and toStringTag of built-ins. The platform must keep working.
// expect: answer mine or exception or internal
// limits: cpu_ms=1000
// times: 3
export default {
  async fetch(request, env) {
    for (const holder of [Array, Promise, RegExp, Map, Set, ArrayBuffer, Object.getPrototypeOf(Uint8Array), Function.prototype]) {
      for (const name of ["species", "hasInstance", "toPrimitive", "iterator", "isConcatSpreadable", "toStringTag", "match", "split", "asyncIterator"]) {
        try {
          Object.defineProperty(holder, Symbol[name], { get: () => () => globalThis, configurable: true });
          if (holder.prototype) Object.defineProperty(holder.prototype, Symbol[name], { get: () => () => globalThis, configurable: true });
        } catch {
          continue;
        }
      }
    }
    await env.ECHO.say({ a: [1, 2] }).catch(() => {});
    return new Response("mine", { headers: { a: "b" } });
  },
};
