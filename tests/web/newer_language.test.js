// What ECMAScript 2026 has and this V8 does not.
import { deepEqual, equal, ok, throws } from "./assert.js";

export const tests = {
  "a map keeps what it has, or takes what it is given": () => {
    const map = new Map([[1, "one"]]);
    deepEqual([map.getOrInsert(1, "x"), map.getOrInsert(2, "two"), map.getOrInsertComputed(3, (key) => key * 2), map.size], ["one", "two", 6, 3]);
    equal(map.getOrInsertComputed(3, () => { throw new Error("not called"); }), 6);
    map.getOrInsertComputed(-0, (key) => ok(Object.is(key, 0)));
    throws(() => map.getOrInsertComputed(1), TypeError);
    throws(() => map.getOrInsertComputed(9, () => { throw new RangeError("boom"); }), RangeError);
    ok(!map.has(9));
    throws(() => Map.prototype.getOrInsert.call(new WeakMap(), {}, 1), TypeError);
    const key = {};
    const weak = new WeakMap();
    deepEqual([weak.getOrInsert(key, 1), weak.getOrInsertComputed(key, () => 2)], [1, 1]);
    throws(() => weak.getOrInsert(1, 1), TypeError);
    deepEqual([Object.keys(Map.prototype), Map.prototype.getOrInsert.name, Map.prototype.getOrInsert.length], [[], "getOrInsert", 2]);
  },
  "iterables follow each other": () => {
    deepEqual([...Iterator.concat([1], new Set([2]), new Map([[3, 4]]))], [1, 2, [3, 4]]);
    deepEqual(Iterator.concat([1], [2]).map((n) => n * 2).toArray(), [2, 4]);
    for (const wrong of [1, "text", null, {}]) throws(() => Iterator.concat(wrong), TypeError);
    let open = 0;
    const source = { [Symbol.iterator]: () => (open++, { next: () => ({ done: false, value: 1 }), return: () => (open--, {}) }) };
    const all = Iterator.concat(source, source);
    equal(open, 0);
    all.next();
    equal(open, 1);
    all.return();
    deepEqual([open, all.next()], [0, { value: undefined, done: true }]);
  },
  "a sum is rounded once": () => {
    const max = Number.MAX_VALUE;
    const cases = [
      [[], -0], [[-0], -0], [[-0, 0], 0], [[0.1, 0.2, 0.3], 0.6], [[1e308, 1e308, -1e308], 1e308], [[1e308, 1e308], Infinity],
      [[1e20, 0.1, -1e20], 0.1], [[2 ** 53, 1], 2 ** 53], [[2 ** 53, 1, 1], 2 ** 53 + 2], [[2 ** 53 + 2, 1], 2 ** 53 + 4],
      [[5e-324, 5e-324], 1e-323], [[2 ** -1022, -5e-324], 2.225073858507201e-308], [[max, 2 ** 969], max], [[max, 2 ** 970], Infinity],
      [[Infinity, 1], Infinity], [[Infinity, -Infinity], NaN], [[NaN, 1], NaN], [[-1, -2], -3], [new Set([1, 2]), 3],
    ];
    for (const [items, sum] of cases) ok(Object.is(Math.sumPrecise(items), sum), `the sum of ${[...items]}`);
    throws(() => Math.sumPrecise([1, "2"]), TypeError);
    throws(() => Math.sumPrecise([1n]), TypeError);
    throws(() => Math.sumPrecise(), TypeError);
  },
};
