// Uses the console of one call in another, with objects that run code when they are inspected.
// expect: answer logged
// times: 4
// limits: cpu_ms=2000
let first = null;
const trap = new Proxy(function () {}, {
  get: (target, key) => (key === Symbol.for("nodejs.util.inspect.custom") ? () => { throw new Error("in inspect"); } : trap),
  getPrototypeOf: () => { throw new Error("no prototype"); },
  ownKeys: () => { throw null; },
  has: () => true,
});
export default {
  async fetch(request) {
    first ??= console;
    const odd = [trap, { get x() { throw undefined; } }, Object.create(null), new Date(NaN), { toString: null }, Symbol("x"), 1n, class {}, new (class extends Map {})()];
    const cyclic = { odd };
    cyclic.cyclic = cyclic;
    for (const name of Object.keys(first)) {
      try {
        first[name](...odd, cyclic, "%s %o %c %d %%", ...odd);
      } catch {
        continue;
      }
    }
    return new Response("logged");
  },
};
