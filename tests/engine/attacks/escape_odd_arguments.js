// Passes to every function of the platform numbers that are not sizes, objects that change while they are read, and values that fail to convert to strings.
// expect: answer survived or exception or cpu or memory
// limits: cpu_ms=10000
export default {
  async fetch(request, env, ctx) {
    let turn = 0;
    const shifty = { get length() { return turn++ % 2 ? 2 ** 53 : 0; }, get byteLength() { return -1; }, valueOf: () => (turn++ % 3 ? NaN : 2 ** 40), toString: () => "\ud800\0".repeat(10), [Symbol.iterator]: function* () { yield* [["a", "b"], ["\0", 1]]; } };
    const bytes = new Uint8Array(new ArrayBuffer(16, { maxByteLength: 1 << 20 }));
    const odd = [shifty, bytes, bytes.buffer, 2 ** 53, -(2 ** 31), 1e308, "\ud800", "\0", "x".repeat(1e5), [shifty, shifty], { a: shifty, size: shifty, highWaterMark: -1, type: "bytes", signal: {}, body: shifty, method: "\0", headers: shifty, name: shifty, length: 2 ** 40, iterations: 2 ** 32, salt: bytes, hash: shifty }, null];
    const skip = /^(setTimeout|setInterval|setImmediate|close|Function|eval|Array|String|BigInt|Object|Promise|Proxy|Reflect|RegExp)$/;
    const objects = [globalThis, crypto, crypto.subtle, caches, caches.default, console, performance, navigator, scheduler, env.ECHO, ctx, request.headers, URL, Response, AbortSignal, Blob.prototype];
    for (const object of objects) {
      for (const key of Reflect.ownKeys(object).concat(Reflect.ownKeys(Object.getPrototypeOf(object) ?? {}))) {
        const method = (() => { try { return object[key]; } catch { return null; } })();
        if (typeof method !== "function" || skip.test(String(key))) continue;
        for (let i = 0; i < odd.length; i++) {
          const args = [odd[i], odd[(i + 5) % odd.length], odd[(i + 7) % odd.length], odd[(i + 2) % odd.length]];
          for (const act of [() => method.apply(object, args), () => new method(...args)]) {
            try {
              const result = act();
              if (typeof result?.then === "function") result.then(() => {}, () => {});
            } catch {
              continue;
            }
          }
        }
        bytes.buffer.resize((turn * 7919) % (1 << 16));
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    return new Response("survived");
  },
};
