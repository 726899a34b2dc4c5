// https://w3c.github.io/user-timing/, scheduler.wait, and a close look at structuredClone.
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

export const tests = {
  "marks and measures": async () => {
    const first = performance.mark("a", { detail: { x: 1 } });
    ok(first instanceof PerformanceMark && first instanceof PerformanceEntry);
    deepEqual([first.name, first.entryType, first.duration, first.detail.x], ["a", "mark", 0, 1]);
    await scheduler.wait(3);
    performance.mark("b", { startTime: 5 });
    const measure = performance.measure("m", { start: 1, end: "b", detail: "d" });
    deepEqual([measure.startTime, measure.duration, measure.detail, measure.entryType], [1, 4, "d", "measure"]);
    equal(performance.measure("n", "b").startTime, 5);
    equal(performance.measure("o", "b", "b").duration, 0);
    equal(performance.measure("p", { duration: 2, end: 5 }).startTime, 3);
    const [found] = performance.getEntriesByName("m");
    const { id } = found;
    const plain = { id, name: "m", entryType: "measure", startTime: 1, duration: 4, navigationId: 0, detail: "d" };
    deepEqual(found.toJSON(), plain);
    equal(performance.getEntriesByType("measure").length, 4);
    equal(performance.getEntriesByName("a", "measure").length, 0);
    const times = performance.getEntries().map((entry) => entry.startTime);
    deepEqual(times, times.toSorted((x, y) => x - y));
    performance.clearMarks("a");
    equal(performance.getEntriesByType("mark").length, 1);
    performance.clearMarks();
    performance.clearMeasures();
    equal(performance.getEntries().length, 0);
  },
  "invalid marks and measures": () => {
    equal(throws(() => performance.measure("x", "never")).name, "SyntaxError");
    throws(() => performance.mark("x", { startTime: -1 }), TypeError);
    throws(() => performance.mark(), TypeError);
    throws(() => performance.measure("x", { start: 1, end: 2, duration: 1 }), TypeError);
    throws(() => performance.measure("x", { detail: 1 }), TypeError);
    throws(() => performance.measure("x", { start: 1 }, "end"), TypeError);
    equal(throws(() => performance.mark("x", { detail: () => {} })).name, "DataCloneError");
    throws(() => new PerformanceEntry(), TypeError);
    throws(() => new PerformanceMeasure(), TypeError);
    equal(new PerformanceMark("own").name, "own");
    equal(performance.getEntries().length, 0);
  },
  "scheduler.wait": async () => {
    equal(await scheduler.wait(1), undefined);
    await rejects(scheduler.wait(1000, { signal: AbortSignal.timeout(1) }), "TimeoutError");
    await rejects(scheduler.wait(1, { signal: AbortSignal.abort(new RangeError("r")) }), RangeError);
    await rejects(scheduler.wait(), TypeError);
    for (const soon of [-1, NaN, undefined, "x"]) equal(await scheduler.wait(soon), undefined);
  },
  "structuredClone of errors": () => {
    for (const Class of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
      const error = new Class("m", { cause: { deep: [1n] } });
      const copy = structuredClone(error);
      deepEqual([copy.constructor, copy.message, copy.name, copy.stack, copy.cause.deep[0]], [Class, "m", Class.name, error.stack, 1n]);
    }
    class Own extends RangeError {
      name = "RangeError";
      extra = 1;
    }
    const own = structuredClone(new Own("o"));
    deepEqual([own.constructor, own.extra], [RangeError, 1]);
    const odd = structuredClone(Object.assign(new Error("x"), { name: "Odd" }));
    equal(odd.name, "Odd");
    const many = structuredClone({ list: [new AggregateError([new TypeError("a")], "m")], map: new Map([[1, Object.assign(new Error("e"), { code: "C" })]]) });
    deepEqual([many.list[0].constructor, many.list[0].errors[0].message, many.map.get(1).code], [AggregateError, "a", "C"]);
    const ring = new Error("ring");
    ring.self = ring;
    ring.bad = () => {};
    deepEqual([structuredClone(ring).self.self.message, structuredClone(ring).bad], ["ring", undefined]);
    const exception = structuredClone(new DOMException("m", "AbortError"));
    deepEqual([exception.name, exception.code, exception instanceof DOMException], ["AbortError", 20, true]);
  },
  "structuredClone of boxes, patterns, collections and cycles": () => {
    for (const box of [new Number(-0), new String("s"), new Boolean(false), Object(5n)]) {
      const copy = structuredClone(box);
      equal(copy.constructor, box.constructor);
      equal(Object.is(copy.valueOf(), box.valueOf()), true);
    }
    throws(() => structuredClone(Object(Symbol("s"))));
    const pattern = /a/giu;
    pattern.lastIndex = 3;
    const copy = structuredClone(pattern);
    deepEqual([copy.source, copy.flags, copy.lastIndex], ["a", "giu", 0]);
    const map = new Map();
    map.set(map, new Set([map]));
    const clone = structuredClone(map);
    ok(clone !== map && clone.has(clone) && clone.get(clone).has(clone));
    const shared = { x: 1 };
    const twice = structuredClone([shared, shared]);
    equal(twice[0], twice[1]);
    equal(structuredClone(new Date(NaN)).getTime(), NaN);
    deepEqual(structuredClone({ get a() { return 1; } }), { a: 1 });
    equal("b" in structuredClone(Object.defineProperty({}, "b", { value: 1, enumerable: false })), false);
    equal(structuredClone("\ud800"), "\ud800");
  },
  "structuredClone of buffers": () => {
    const resizable = new ArrayBuffer(4, { maxByteLength: 16 });
    const tracking = new Uint8Array(resizable);
    const copy = structuredClone(tracking);
    equal(copy.buffer.resizable, true);
    copy.buffer.resize(8);
    deepEqual([copy.length, tracking.length], [8, 4]);
    for (const Class of [Int8Array, Uint8ClampedArray, Float32Array, Float64Array, BigInt64Array, DataView]) {
      equal(structuredClone(new Class(new ArrayBuffer(16))).constructor, Class);
    }
    const buffer = new ArrayBuffer(8);
    const view = structuredClone(new Uint8Array(buffer, 2, 3), { transfer: [buffer] });
    deepEqual([view.byteOffset, view.length, buffer.detached], [2, 3, true]);
    equal(throws(() => structuredClone(buffer)).name, "DataCloneError");
    const kept = new ArrayBuffer(1);
    throws(() => structuredClone([kept, () => {}], { transfer: [kept] }));
    equal(kept.detached, false);
  },
  "a PerformanceObserver receives marks and measures": async () => {
    const heard = [];
    const observed = new Promise((resolve) => {
      const observer = new PerformanceObserver((list, self, { droppedEntriesCount }) => {
        heard.push(...list.getEntries().map(({ name, entryType }) => `${entryType} ${name}`), self === observer, droppedEntriesCount);
        resolve(observer);
      });
      observer.observe({ entryTypes: ["mark", "measure", "unheard-of"] });
    });
    performance.mark("seen");
    performance.measure("between", "seen");
    const observer = await observed;
    deepEqual(heard.sort(), [0, true, "mark seen", "measure between"].sort());
    performance.mark("taken");
    deepEqual(observer.takeRecords().map(({ name }) => name), ["taken"]);
    equal(throws(() => observer.observe({ type: "mark" })).name, "InvalidModificationError");
    observer.disconnect();
    performance.mark("unseen");
    deepEqual(observer.takeRecords(), []);
    throws(() => observer.observe({}), TypeError);
    deepEqual([...PerformanceObserver.supportedEntryTypes], ["mark", "measure"]);
  },
  "measures without a start": () => {
    performance.mark("end", { startTime: 7 });
    deepEqual([null, undefined, {}].map((start) => performance.measure("m", start, "end").duration), [7, 7, 7]);
    throws(() => performance.measure("m", "navigationStart"), TypeError);
    equal(throws(() => performance.measure("m", "no such mark")).name, "SyntaxError");
  },
  "an observer ignores unknown entry types": () => {
    const observer = new PerformanceObserver(() => {});
    observer.observe({ entryTypes: ["mark"], buffered: true, others: 1 });
    throws(() => observer.observe({ entryTypes: ["mark"], type: "mark" }), TypeError);
    observer.disconnect();
  },
  "entries have ids": () => {
    const [first, second] = [performance.mark("a"), performance.mark("b")];
    ok(first.id < second.id);
    deepEqual(Object.keys(first.toJSON()), ["id", "name", "entryType", "startTime", "duration", "navigationId", "detail"]);
  },
};
