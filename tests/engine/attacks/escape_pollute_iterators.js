// Makes arrays iterate over other values.
// expect: answer mine or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const original = Array.prototype[Symbol.iterator];
    Array.prototype[Symbol.iterator] = function* () {
      yield "evil";
    };
    try {
      return new Response("mine", { headers: { a: "b" } });
    } finally {
      Array.prototype[Symbol.iterator] = original;
    }
  },
};
