import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const count = (most) =>
  new Observable((subscriber) => {
    for (let i = 1; i <= most && subscriber.active; i++) subscriber.next(i);
    subscriber.complete();
  });

export const tests = {
  "a subscription receives values and the end": () => {
    const heard = [];
    count(3).subscribe({ next: (value) => heard.push(value), complete: () => heard.push("end") });
    deepEqual(heard, [1, 2, 3, "end"]);
  },

  "aborting ends a subscription and runs teardowns in reverse order": () => {
    const heard = [];
    const controller = new AbortController();
    let tell;
    const source = new Observable((subscriber) => {
      tell = subscriber;
      subscriber.addTeardown(() => heard.push("first"));
      subscriber.addTeardown(() => heard.push("second"));
    });
    source.subscribe((value) => heard.push(value), { signal: controller.signal });
    tell.next(1);
    controller.abort("enough");
    tell.next(2);
    deepEqual(heard, [1, "second", "first"]);
    deepEqual([tell.active, tell.signal.reason], [false, "enough"]);
  },

  "several subscribers share one producer": () => {
    let producers = 0;
    const heard = [];
    const target = new EventTarget();
    const source = new Observable((subscriber) => {
      producers++;
      target.addEventListener("x", () => subscriber.next("x"), { signal: subscriber.signal });
    });
    source.subscribe((value) => heard.push(`a ${value}`));
    source.subscribe((value) => heard.push(`b ${value}`));
    target.dispatchEvent(new Event("x"));
    deepEqual([producers, heard], [1, ["a x", "b x"]]);
  },

  "operators": async () => {
    const source = count(6);
    deepEqual(await source.filter((value) => value % 2 === 0).map((value, index) => [value, index]).toArray(), [[2, 0], [4, 1], [6, 2]]);
    deepEqual(await source.drop(1).take(2).toArray(), [2, 3]);
    deepEqual(await source.take(2).flatMap((value) => [value, value * 10]).toArray(), [1, 10, 2, 20]);
    deepEqual(await source.switchMap((value) => Promise.resolve(value)).toArray(), [6]);
    deepEqual(await source.takeUntil(Observable.from(["stop"])).toArray(), []);
    deepEqual([await source.first(), await source.last(), await source.find((value) => value > 2)], [1, 6, 3]);
    deepEqual([await source.every((value) => value < 7), await source.some((value) => value > 7)], [true, false]);
    equal(await source.reduce((sum, value) => sum + value), 21);
    equal(await source.reduce((sum, value) => sum + value, 100), 121);
  },

  "errors are caught, inspected, or reported": async () => {
    const broken = new Observable(() => {
      throw new RangeError("broken");
    });
    deepEqual(await broken.catch(({ message }) => [message, "instead"]).toArray(), ["broken", "instead"]);
    const seen = [];
    await rejects(broken.inspect({ error: ({ message }) => seen.push(message) }).finally(() => seen.push("finally")).toArray(), RangeError);
    deepEqual(seen, ["broken", "finally"]);
    await rejects(count(0).first(), RangeError);
    await rejects(count(2).forEach(5), TypeError);
    await rejects(count(2).toArray({ signal: AbortSignal.abort("no") }).catch((reason) => Promise.reject(new TypeError(reason))), TypeError);
    let reported;
    addEventListener("error", (event) => (event.preventDefault(), (reported = event.error)), { once: true });
    broken.subscribe();
    equal(reported.message, "broken");
  },

  "from() accepts iterables, async iterables and promises": async () => {
    const steps = [];
    async function* ticks() {
      try {
        yield 1;
        yield 2;
        yield 3;
      } finally {
        steps.push("closed");
      }
    }
    deepEqual(await Observable.from(ticks()).take(2).toArray(), [1, 2]);
    deepEqual([await Observable.from(Promise.resolve(4)).first(), await Observable.from(new Set([5])).first()], [4, 5]);
    deepEqual(steps, ["closed"]);
    for (const value of [5, null, {}, () => {}]) throws(() => Observable.from(value), TypeError);
  },

  "events of a target": async () => {
    const target = new EventTarget();
    const first = target.when("news").map(({ detail }) => detail).first();
    target.dispatchEvent(new CustomEvent("news", { detail: "hello" }));
    equal(await first, "hello");
    throws(() => new Subscriber(), TypeError);
    throws(() => Observable.prototype.map.call({}, () => {}), TypeError);
    ok(`${new Observable(() => {})}` === "[object Observable]");
  },
};
