// Timers, structuredClone, crypto, console, performance, navigator and the shape of the global object.
import { deepEqual, equal, ok, throws } from "./assert.js";

const sleep = (delay) => new Promise((resolve) => setTimeout(resolve, delay));

export const tests = {
  "errors name classes as workers know them": () => {
    const wrong = [];
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      const Class = globalThis[name];
      if (typeof Class !== "function" || Class.prototype === undefined || !/^class\b/.test(Function.prototype.toString.call(Class))) continue;
      const tries = [() => Class()];
      for (const { get, set, value } of Object.values(Object.getOwnPropertyDescriptors(Class.prototype))) {
        for (const method of [get, set, value]) if (typeof method === "function" && method !== Class) tries.push(() => method.call({}, "", ""));
      }
      for (const attempt of tries) {
        try {
          attempt();
        } catch (error) {
          if (/\b(class|constructor) (_|anonymous)/.test(error.message)) wrong.push(`${name}: ${error.message}`);
        }
      }
    }
    deepEqual(wrong, []);
  },

  "a timeout passes its arguments on": async () => {
    const args = await new Promise((resolve) => setTimeout((...all) => resolve(all), 1, "a", 2));
    deepEqual(args, ["a", 2]);
    throws(() => setTimeout("code", 1), EvalError);
    throws(() => setTimeout(), TypeError);
  },
  "timers fire in the order of their times": async () => {
    const log = [];
    setTimeout(() => log.push(2), 20);
    setTimeout(() => log.push(1), 1);
    setTimeout(() => log.push("negative"), -5);
    await sleep(40);
    deepEqual(log.sort(), [1, 2, "negative"]);
  },
  "a cleared timer does not fire": async () => {
    let fired = false;
    const id = setTimeout(() => {
      fired = true;
    }, 1);
    clearTimeout(id);
    clearTimeout(id);
    clearTimeout(undefined);
    clearTimeout(12345678);
    await sleep(10);
    equal(fired, false);
  },
  "an interval repeats until it is cleared": async () => {
    let count = 0;
    await new Promise((resolve) => {
      const id = setInterval(() => {
        if (++count === 3) {
          clearInterval(id);
          resolve();
        }
      }, 1);
    });
    await sleep(10);
    equal(count, 3);
  },
  "microtasks come before timers": async () => {
    const log = [];
    setTimeout(() => log.push("timer"), 0);
    setImmediate(() => log.push("immediate"));
    queueMicrotask(() => log.push("micro"));
    Promise.resolve().then(() => log.push("promise"));
    await sleep(10);
    deepEqual(log.slice(0, 2), ["micro", "promise"]);
    equal(log.length, 4);
    throws(() => queueMicrotask(5), TypeError);
    throws(() => queueMicrotask(), TypeError);
  },
  "an error in a timer is reported": async () => {
    const seen = [];
    const onError = (event) => {
      seen.push(event.error.message);
      event.preventDefault();
    };
    addEventListener("error", onError);
    setTimeout(() => {
      throw new Error("from a timer");
    }, 1);
    queueMicrotask(() => {
      throw new Error("from a microtask");
    });
    await sleep(20);
    removeEventListener("error", onError);
    deepEqual(seen, ["from a microtask", "from a timer"]);
  },
  "structuredClone copies every cloneable value": () => {
    const value = {
      date: new Date(5), map: new Map([[1, { a: 1 }]]), set: new Set(["x"]), bytes: new Uint8Array([1, 2]),
      list: Object.assign(Array(3), { 0: 1, 2: 3 }), big: 10n, nothing: undefined, text: "é\ud800", regexp: /x/g, boxed: new Number(5), not: NaN,
    };
    value.self = value;
    const copy = structuredClone(value);
    ok(copy !== value);
    equal(copy.self, copy);
    deepEqual(copy.date, value.date);
    deepEqual(copy.map, value.map);
    deepEqual(copy.set, value.set);
    deepEqual(copy.bytes, value.bytes);
    equal(copy.text, value.text);
    equal(copy.regexp.flags, "g");
    equal(1 in copy.list, false);
    equal(copy.big, 10n);
    const error = structuredClone(new RangeError("r", { cause: 1 }));
    ok(error instanceof RangeError);
    equal(error.message, "r");
  },
  "structuredClone of instances of the worker's classes": () => {
    class Point {
      x = 1;
    }
    const copy = structuredClone(new Point());
    equal(Object.getPrototypeOf(copy), Object.prototype);
    equal(copy.x, 1);
    const bare = Object.assign(Object.create(null), { a: new Point() });
    equal(structuredClone(bare).a.x, 1);
  },
  "structuredClone of a DOMException": () => {
    const copy = structuredClone({ error: new DOMException("m", "AbortError") }).error;
    ok(copy instanceof DOMException);
    deepEqual([copy.name, copy.message, copy.code], ["AbortError", "m", 20]);
    const list = structuredClone([new DOMException("1", "A"), { x: new DOMException("2", "B") }, new DOMException("3", "C")]);
    deepEqual([list[0].message, list[1].x.message, list[2].message], ["1", "2", "3"]);
  },
  "structuredClone refuses other values": () => {
    for (const value of [
      () => {}, Symbol("s"), new Response(""), new URL("http://a"), new AbortController(), new WeakMap(),
      Promise.resolve(), { deep: [new Request("http://a/", { method: "POST", body: "x" })] }, new ReadableStream(), new Proxy({}, {}), new EventTarget(),
    ]) {
      equal(throws(() => structuredClone(value), DOMException).name, "DataCloneError");
    }
    equal(throws(() => structuredClone({ get x() { throw new RangeError("mine"); } })).message, "mine");
    throws(() => structuredClone(), TypeError);
  },
  "structuredClone moves buffers": () => {
    const buffer = new Uint8Array([1, 2, 3]).buffer;
    const copy = structuredClone({ buffer, view: new Uint8Array(buffer, 1) }, { transfer: [buffer] });
    equal(buffer.detached, true);
    equal(copy.buffer.byteLength, 3);
    equal(copy.view.buffer, copy.buffer);
    deepEqual([...copy.view], [2, 3]);
    equal(throws(() => structuredClone(1, { transfer: [buffer] })).name, "DataCloneError");
    const other = new ArrayBuffer(1);
    equal(throws(() => structuredClone(1, { transfer: [other, other] })).name, "DataCloneError");
    equal(other.detached, false);
    equal(throws(() => structuredClone(1, { transfer: [{}] })).name, "DataCloneError");
    throws(() => structuredClone(1, { transfer: 5 }), TypeError);
    const resizable = new ArrayBuffer(2, { maxByteLength: 8 });
    equal(structuredClone(resizable, { transfer: [resizable] }).maxByteLength, 8);
  },
  "a clone that would be huge is refused": () => {
    const text = "x".repeat(30_000_000);
    equal(throws(() => structuredClone(Array(1000).fill(text))).name, "DataCloneError");
  },
  "random numbers": () => {
    const array = new Uint8Array(1000);
    equal(crypto.getRandomValues(array), array);
    ok(new Set(array).size > 100);
    ok(crypto.getRandomValues(new BigUint64Array(2))[0] !== 0n);
    const view = new Uint8Array(100).subarray(50, 60);
    crypto.getRandomValues(view);
    ok(new Uint8Array(view.buffer, 0, 50).every((byte) => byte === 0));
    equal(throws(() => crypto.getRandomValues(new Uint8Array(65537))).name, "QuotaExceededError");
    equal(throws(() => crypto.getRandomValues(new Float32Array(1))).name, "TypeMismatchError");
    equal(throws(() => crypto.getRandomValues(new DataView(new ArrayBuffer(1)))).name, "TypeMismatchError");
    throws(() => crypto.getRandomValues([]), TypeError);
    equal(crypto.getRandomValues(new Uint8Array(65536)).length, 65536);
    throws(() => new Crypto(), TypeError);
  },
  "random UUIDs": () => {
    const ids = new Set();
    for (let i = 0; i < 1000; i++) ids.add(crypto.randomUUID());
    equal(ids.size, 1000);
    for (const id of ids) ok(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), id);
  },
  "the clock": async () => {
    const before = performance.now();
    await sleep(5);
    ok(performance.now() > before);
    ok(performance.timeOrigin > 1.6e12);
    ok(Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 5000);
    equal(JSON.parse(JSON.stringify(performance)).timeOrigin, performance.timeOrigin);
    ok(new Event("x").timeStamp >= before);
  },
  "the console accepts every value": () => {
    const cycle = { name: "cycle" };
    cycle.self = cycle;
    const hostile = new Proxy({}, { get: () => { throw new Error("trap"); }, ownKeys: () => { throw new Error("trap"); } });
    const values = [
      undefined, null, -0, 10n, "text", Symbol("s"), cycle, hostile, Array(3), new Map([[{}, []]]), new Set([1]), () => {},
      class A {}, new Error("e", { cause: cycle }), new Date(NaN), new Uint8Array(3), new ArrayBuffer(3), new Response(""),
      new URL("http://a"), Object.create(null), { get x() { throw new Error("getter"); } }, new Promise(() => {}),
      { [Symbol.toStringTag]: "Tagged" }, Array(1e6), "x".repeat(100_000), new (class extends Array {})(3), /x/, new Number(5),
      Object.defineProperty(new Error("x"), "stack", { get: () => { throw new Error("stack"); } }), performance, navigator,
      { constructor: null, toString: null }, new AbortController(), new ReadableStream(), Reflect, globalThis,
    ];
    for (const method of ["log", "info", "warn", "error", "debug", "trace", "dir", "dirxml", "table", "assert", "group"]) {
      for (const value of values) equal(console[method](value), undefined);
      if (method === "group") values.forEach(() => console.groupEnd());
    }
    console.log("%s %d %i %f %j %o %O %c %% %x", "a", 1, 2.5, "3.5", cycle, {}, {}, "css", "rest");
    console.log("%s", hostile);
    console.log();
    console.time("t");
    console.timeLog("t", 1);
    console.timeEnd("t");
    console.timeEnd("never");
    console.count();
    console.countReset();
    console.countReset("never");
    console.groupEnd();
  },
  "globals are named and placed as the standards say": () => {
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      const { value, enumerable } = Object.getOwnPropertyDescriptor(globalThis, name);
      if (typeof value !== "function" || !/^[A-Z]/.test(name)) continue;
      equal(value.name, name);
      equal(enumerable, false, name);
    }
    equal(self, globalThis);
    equal(navigator.userAgent, "Cloudflare-Workers");
    deepEqual(navigator.languages, ["en"]);
    ok(Object.isFrozen(navigator.languages) && navigator.languages === navigator.languages);
    const [client, server] = new WebSocketPair();
    ok(client instanceof WebSocket && server instanceof WebSocket && client !== server);
    deepEqual([WebSocket.READY_STATE_OPEN, client.READY_STATE_CLOSED], [1, 3]);
    equal(performance.clearResourceTimings(), undefined);
    throws(() => performance.setResourceTimingBufferSize(), TypeError);
    for (const method of ["profile", "profileEnd", "timeStamp"]) equal(console[method]("x"), undefined);
    equal(Object.keys(Response.prototype).includes("text"), true);
    equal(Response.prototype[Symbol.toStringTag], "Response");
    equal(typeof globalThis.native, "undefined");
    throws(() => new navigator.constructor(), TypeError);
    deepEqual([navigator.appCodeName, navigator.appName, navigator.product], ["Mozilla", "Netscape", "Gecko"]);
  },
  "members of the global object are inherited, and belong to nothing else": async () => {
    for (const name of ["fetch", "crypto", "setTimeout", "self", "onerror"]) {
      equal(Object.hasOwn(globalThis, name), false, name);
      equal(Object.hasOwn(WorkerGlobalScope.prototype, name), true, name);
    }
    deepEqual([fetch.name, fetch.length, setTimeout.length], ["fetch", 1, 1]);
    throws(() => ({ atob }).atob("YQ=="), TypeError);
    throws(() => WorkerGlobalScope.prototype.crypto, TypeError);
    await ({ fetch }).fetch("data:,x").then(() => ok(false), (error) => ok(error instanceof TypeError));
    equal(await (await fetch.call(undefined, "data:,x")).text(), "x");
    const { performance: real } = globalThis;
    globalThis.performance = "mine";
    equal(performance, "mine");
    delete globalThis.performance;
    equal(performance, real);
  },
  "properties of Object.prototype are not options": () => {
    const polluted = {
      ...{ method: "POST", body: "x", headers: { a: "b" }, signal: 5, status: 404, transfer: 5, fatal: true, once: true, detail: 3 },
      ...{ type: "bytes", endings: "x", lastModified: 4, highWaterMark: -1, size: 1, start: 1, set: 1, value: 1, data: 1, code: 7 },
    };
    try {
      Object.assign(Object.prototype, polluted);
      const request = new Request("http://a.example/");
      deepEqual([request.method, request.body, [...request.headers].length], ["GET", null, 0]);
      equal(new Response("x").status, 200);
      equal(structuredClone(5), 5);
      equal(new TextDecoder().fatal, false);
      equal(new CustomEvent("x").detail, null);
      equal(new MessageEvent("x").data, null);
      equal(new CloseEvent("x").code, 0);
      equal(new Blob([]).type, "");
      ok(new File([], "x").lastModified > 4);
      for (const Stream of [ReadableStream, WritableStream, TransformStream]) new Stream();
      new MessageChannel().port1.postMessage(1);
    } finally {
      for (const name of Object.keys(polluted)) delete Object.prototype[name];
    }
  },
  "a worker that breaks its built-ins affects only itself": async () => {
    const { push } = Array.prototype;
    try {
      Array.prototype.push = null;
      equal(new Response("x").status, 200);
    } finally {
      Array.prototype.push = push;
    }
    equal(await new Response("x").text(), "x");
  },
  "a socket of a pair delivers messages until the other side has closed": async () => {
    const [client, server] = new WebSocketPair();
    deepEqual([client.url, client.protocol, client.extensions], [null, "", ""]);
    server.accept();
    client.accept();
    server.addEventListener("message", ({ data }) => server.send(`heard ${data}`));
    const heard = new Promise((resolve) => client.addEventListener("message", ({ data }) => resolve(data)));
    client.send("x");
    client.close();
    equal(await heard, "heard x");
  },
  "errors have the texts of Cloudflare": async () => {
    const said = (act) => {
      try {
        act();
      } catch (error) {
        return `${error.name}: ${error.message}`;
      }
      return "nothing";
    };
    equal(
      said(() => queueMicrotask("x")),
      "TypeError: Failed to execute 'queueMicrotask' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'function'.",
    );
    const options = { cache: "no-store", cf: { cacheTtl: 300 } };
    new Request("https://a.example", options);
    const refused = await fetch("https://a.example", options).catch((error) => `${error.name}: ${error.message}`);
    equal(refused, "TypeError: CacheTtl: 300, is not compatible with cache: no-store header.");
    const pull = ({ byobRequest }) => {
      byobRequest.respond(1);
      byobRequest.respond(1);
    };
    const reader = new ReadableStream({ type: "bytes", pull }).getReader({ mode: "byob" });
    await reader.read(new Uint8Array(1));
    const failed = await reader.read(new Uint8Array(1)).catch((error) => error.message);
    equal(failed, "This ReadableStreamBYOBRequest has been invalidated.");
  },
};
