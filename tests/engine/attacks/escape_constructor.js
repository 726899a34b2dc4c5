// The constructor of a constructor compiles code. In other runtimes that code can reach the host.
// expect: answer EvalError
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const ways = [
      () => ({}).constructor.constructor("return process")(),
      () => [].at.constructor("return this")(),
      () => (async () => {}).constructor("return import('fs')")(),
      () => Reflect.construct(Function, ["return globalThis"])(),
      () => request.constructor.constructor("return this")(),
      () => ctx.waitUntil.constructor("return this")(),
      () => env.constructor.constructor("return this")(),
    ];
    const names = new Set();
    for (const way of ways) {
      try {
        names.add(typeof way());
      } catch (error) {
        names.add(error.name);
      }
    }
    return new Response([...names].join());
  },
};
