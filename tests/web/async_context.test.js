// https://nodejs.org/api/async_context.html
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { deepEqual, equal, rejects, throws } from "./assert.js";

const sleep = (delay) => new Promise((resolve) => setTimeout(resolve, delay));

export const tests = {
  "code that runs inside sees the store": () => {
    const storage = new AsyncLocalStorage();
    equal(storage.getStore(), undefined);
    const result = storage.run("outer", (a, b) => {
      equal(storage.getStore(), "outer");
      storage.run("inner", () => equal(storage.getStore(), "inner"));
      equal(storage.getStore(), "outer");
      storage.exit(() => equal(storage.getStore(), undefined));
      return a + b;
    }, 1, 2);
    equal(result, 3);
    equal(storage.getStore(), undefined);
    throws(() => storage.run(1, () => { throw new RangeError("x"); }), RangeError);
    equal(storage.getStore(), undefined);
  },
  "a store follows await, then, microtasks, timers and thenables": async () => {
    const storage = new AsyncLocalStorage();
    const seen = [];
    const note = (name) => seen.push([name, storage.getStore()]);
    await storage.run(7, async () => {
      await null;
      note("await");
      await Promise.resolve().then(() => note("then"));
      await new Promise((resolve) => queueMicrotask(() => { note("microtask"); resolve(); }));
      await new Promise((resolve) => setTimeout(() => { note("timer"); resolve(); }, 1));
      await new Promise((resolve) => setImmediate(() => { note("immediate"); resolve(); }));
      await { then: (resolve) => { note("thenable"); resolve(); } };
      for await (const item of (async function* () { note("generator"); yield 1; })()) note(`item ${item}`);
      await import("node:path");
      note("import");
    });
    deepEqual(seen.map(([, store]) => store), seen.map(() => 7));
    equal(seen.length, 9);
    equal(storage.getStore(), undefined);
  },
  "interleaved runs do not mix": async () => {
    const storage = new AsyncLocalStorage();
    const results = await Promise.all([5, 1, 3].map((delay) => storage.run(delay, async () => {
      await sleep(delay);
      const first = storage.getStore();
      await sleep(6 - delay);
      return [first, storage.getStore()];
    })));
    deepEqual(results, [[5, 5], [1, 1], [3, 3]]);
  },
  "two storages are independent": async () => {
    const [a, b] = [new AsyncLocalStorage(), new AsyncLocalStorage()];
    await a.run("a", () => b.run("b", async () => {
      await sleep(1);
      deepEqual([a.getStore(), b.getStore()], ["a", "b"]);
      a.exit(() => deepEqual([a.getStore(), b.getStore()], [undefined, "b"]));
    }));
  },
  "an interval keeps its store": async () => {
    const storage = new AsyncLocalStorage();
    const seen = [];
    await storage.run("i", () => new Promise((resolve) => {
      const id = setInterval(() => {
        if (seen.push(storage.getStore()) < 3) return;
        clearInterval(id);
        resolve();
      }, 1);
    }));
    deepEqual(seen, ["i", "i", "i"]);
  },
  "enterWith lasts until the current execution ends": async () => {
    const storage = new AsyncLocalStorage();
    await (async () => {
      storage.enterWith("entered");
      await sleep(1);
      equal(storage.getStore(), "entered");
    })();
    storage.disable();
    equal(storage.getStore(), undefined);
  },
  "a default, and a store of undefined": () => {
    const storage = new AsyncLocalStorage({ defaultValue: "d", name: "n" });
    equal(storage.name, "n");
    equal(storage.getStore(), "d");
    storage.run(undefined, () => equal(storage.getStore(), undefined));
    storage.run(null, () => equal(storage.getStore(), null));
    storage.exit(() => equal(storage.getStore(), undefined));
  },
  "bind and snapshot keep the current stores": async () => {
    const storage = new AsyncLocalStorage();
    const [bound, snapshot] = storage.run("then", () => [
      AsyncLocalStorage.bind(function read(x) { return [this?.name, x, storage.getStore()]; }),
      AsyncLocalStorage.snapshot(),
    ]);
    storage.run("now", () => {
      deepEqual(bound.call({ name: "me" }, 1), ["me", 1, "then"]);
      equal(snapshot((x) => `${x} ${storage.getStore()}`, "x"), "x then");
      equal(storage.getStore(), "now");
    });
    const empty = AsyncLocalStorage.snapshot();
    storage.run("now", () => equal(empty(() => storage.getStore()), undefined));
    throws(() => AsyncLocalStorage.bind(5), TypeError);
  },
  "an AsyncResource runs in the stores of its creation": () => {
    const storage = new AsyncLocalStorage();
    const resource = storage.run("made", () => new AsyncResource("Thing"));
    equal(resource.runInAsyncScope(() => storage.getStore()), "made");
    equal(resource.bind(() => storage.getStore())(), "made");
    equal(typeof resource.asyncId(), "number");
    equal(resource.emitDestroy(), resource);
    equal(storage.run("b", () => AsyncResource.bind(() => storage.getStore()))(), "b");
    throws(() => new AsyncResource(), TypeError);
  },
  "listeners run in the stores of the dispatcher": () => {
    const storage = new AsyncLocalStorage();
    const target = new EventTarget();
    const seen = [];
    storage.run("adds", () => target.addEventListener("x", () => seen.push(storage.getStore())));
    storage.run("dispatches", () => target.dispatchEvent(new Event("x")));
    deepEqual(seen, ["dispatches"]);
  },
  "streams run in the stores of the reader": async () => {
    const storage = new AsyncLocalStorage();
    const stream = new ReadableStream({ pull(controller) { controller.enqueue(storage.getStore()); controller.close(); } }, { highWaterMark: 0 });
    await null;
    const { value } = await storage.run("reader", () => stream.getReader().read());
    equal(value, "reader");
  },
  "a rejection keeps the store": async () => {
    const storage = new AsyncLocalStorage();
    await rejects(storage.run("r", async () => {
      try {
        await Promise.reject(new Error("x"));
      } catch {
        equal(storage.getStore(), "r");
      }
      throw new Error("y");
    }), Error);
  },
};
