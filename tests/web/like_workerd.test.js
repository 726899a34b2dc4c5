// Behaviours that workerd's own tests ask for, each compared with workerd.
import * as workers from "cloudflare:workers";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);

const failure = async (action) => {
  const error = await rejects(action());
  return `${error.name}: ${error.message}`;
};

export const tests = {
  "what the cache API of Cloudflare lacks says so": () => {
    for (const name of ["add", "addAll", "keys", "matchAll"]) {
      equal(throws(() => caches.default[name]("http://a/")).message, `Failed to execute '${name}' on 'Cache': the method is not implemented.`);
    }
    for (const name of ["delete", "has", "keys", "match"]) {
      equal(throws(() => caches[name]("x")).message, `Failed to execute '${name}' on 'CacheStorage': the method is not implemented.`);
    }
  },
  "performance has what Node has": () => {
    deepEqual(performance.eventLoopUtilization(), { idle: 0, active: 0, utilization: 0 });
    const work = () => 1;
    equal(performance.timerify(work), work);
    equal(performance.markResourceTiming(), undefined);
    deepEqual([performance.nodeTiming.bootstrapComplete, performance.nodeTiming.uvMetricsInfo.loopCount, performance.eventCounts.size], [0, 0, 0]);
    throws(() => Performance.prototype.timerify.call({}, work), TypeError);
    const { PerformanceResourceTiming } = globalThis;
    throws(() => new PerformanceResourceTiming(), TypeError);
    equal(Object.getPrototypeOf(PerformanceResourceTiming), PerformanceEntry);
  },
  "classes of the events of scripts are there, and make none": () => {
    const { ScheduledEvent, TailEvent, TraceEvent } = globalThis;
    for (const Class of [ScheduledEvent, TailEvent, TraceEvent]) {
      equal(Object.getPrototypeOf(Class), ExtendableEvent);
      equal(throws(() => new Class("x"), TypeError).message, "Illegal constructor");
    }
  },
  "errors of cryptography have the texts of Cloudflare": async () => {
    const { subtle } = crypto;
    const key = await subtle.generateKey({ name: "AES-GCM", length: 128 }, false, ["encrypt"]);
    const raw = (name, usages = ["encrypt"], size = 16) => subtle.importKey("raw", new Uint8Array(size), name, true, usages);
    deepEqual(await Promise.all([
      () => subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(0) }, key, bytes("x")),
      () => subtle.encrypt({ name: "AES-GCM" }, key, bytes("x")),
      () => subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, bytes("x")),
      () => subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, new Uint8Array(16)),
      () => subtle.exportKey("raw", key),
      () => raw("AES-GCM", []),
      () => raw("AES-GCM", ["encrypt"], 5),
      () => subtle.generateKey({ name: "AES-GCM", length: 100 }, true, ["encrypt"]),
      () => subtle.generateKey({ name: "ECDSA", namedCurve: "P-111" }, true, ["sign"]),
      async () => subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: bytes("s"), iterations: 0 }, await subtle.importKey("raw", bytes("p"), "PBKDF2", false, ["deriveBits"]), 8),
      async () => subtle.timingSafeEqual(bytes("a"), bytes("ab")),
    ].map(failure)), [
      "OperationError: AES-GCM IV must not be empty.",
      'TypeError: Missing field "iv" in "algorithm".',
      'InvalidAccessError: Requested algorithm "AES-CBC" does not match this CryptoKey\'s algorithm "AES-GCM".',
      'InvalidAccessError: Requested key usage "decrypt" does not match any usage listed in this CryptoKey.',
      "InvalidAccessError: Attempt to export non-extractable AES-GCM key.",
      "SyntaxError: Secret/private CryptoKeys must have at least one usage.",
      "DataError: Imported AES key length must be 128, 192, or 256 bits but provided 40.",
      "OperationError: Generated AES key length must be 128, 192, or 256 bits but requested 100.",
      'NotSupportedError: Unrecognized or unimplemented EC curve "P-111" requested.',
      "OperationError: PBKDF2 requires a positive iteration count (requested 0).",
      "TypeError: Input buffers must have the same byte length.",
    ]);
  },
  "a worker makes no events of the platform": () => {
    equal(throws(() => new ExtendableEvent("foo"), TypeError).message, "Illegal constructor");
    equal(throws(() => new FetchEvent("fetch", { request: new Request("http://a/") }), TypeError).message, "Illegal constructor");
  },
  "a name in a form does not end in a backslash": () => {
    const make = (name, value) => {
      const form = new FormData();
      form.set(name, value);
      return () => new Request("http://a/", { method: "POST", body: form });
    };
    const text = "Name or filename can't end with backslash";
    equal(throws(make("file", new File(["x"], "a.txt\\")), TypeError).message, text);
    equal(throws(make("file\\", "x"), TypeError).message, text);
    make("fi\\le", new File(["x"], "a\\.txt"))();
  },
  "a digest can be disposed of": async () => {
    const stream = new crypto.DigestStream("SHA-256");
    const writer = stream.getWriter();
    writer.closed.catch(() => {});
    stream[Symbol.dispose]();
    stream[Symbol.dispose]();
    for (const failed of [stream.digest, writer.write("x")]) equal((await rejects(failed, TypeError)).message, "The DigestStream was disposed.");
  },
  "a byte stream takes ArrayBuffers, and a strategy with a size": async () => {
    const source = { type: "bytes", start(controller) { controller.enqueue(bytes("ab").buffer); controller.close(); } };
    equal(await new Response(new ReadableStream(source)).text(), "ab");
    const counted = new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: 5 }));
    equal(await new Response(counted).text(), "ab");
    let controller;
    new ReadableStream({ type: "bytes", start: (given) => void (controller = given) });
    for (const wrong of [1, "x", {}]) throws(() => controller.enqueue(wrong), TypeError);
  },
  "answers that do not fit a read say so": async () => {
    const messages = [];
    const stream = new ReadableStream({
      type: "bytes",
      pull({ byobRequest }) {
        for (const wrong of [() => byobRequest.respond(0), () => byobRequest.respond(10)]) messages.push(throws(wrong).message);
        messages.push(throws(() => byobRequest.respondWithNewView(new Uint8Array(9)), RangeError).message);
        byobRequest.respond(1);
      },
    });
    const reader = stream.getReader({ mode: "byob" });
    equal((await reader.read(new Uint8Array(4))).value.length, 1);
    deepEqual(messages, [
      "The bytesWritten must be more than zero while the stream is open.",
      "Too many bytes [10] in response to a BYOB read request.",
      "The underlying ArrayBuffer is not the correct length.",
    ]);
    equal((await rejects(reader.read(new Uint8Array(4), { min: 0 }), TypeError)).message, "Requested invalid minimum number of bytes to read (0).");
  },
  "a second close() of a stream of the platform is no error": async () => {
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    const text = new Response(readable).text();
    await writer.write(undefined);
    await writer.write("x");
    await writer.close();
    await writer.close();
    equal(await text, "x");
    const own = new WritableStream().getWriter();
    await own.close();
    await rejects(own.close(), TypeError);
  },
  "symbols are left out of the parameters of a query": () => {
    const given = new URLSearchParams("a=b");
    given[Symbol.iterator] = undefined;
    given.y = "z";
    equal(new URLSearchParams(given).toString(), "y=z");
  },
  "an EventSource over a stream is open at once": () => {
    const source = EventSource.from(new ReadableStream());
    equal(source.readyState, EventSource.OPEN);
    source.close();
    equal(throws(() => new EventSource("not a URL")).message, "Cannot open an EventSource to 'not a URL'. The URL is invalid.");
  },
  "request.cf stays with requests made from another": () => {
    const request = new Request("http://a/", { cf: { colo: "X" } });
    deepEqual([request.clone().cf, new Request(request).cf, new Request("http://b/", request).cf], Array(3).fill({ colo: "X" }));
    deepEqual(new Request(request, { cf: { more: 1 } }).cf, { more: 1 });
  },
  "request.cf of the request that arrived stays with those made from it": (request) => {
    equal(new Request(request.clone()).cf.colo, "ATL"); // read from the copy first
    equal(new Request("http://b/", new Request(request)).cf.httpProtocol, "HTTP/1.1");
  },
  "withEnv() gives other bindings to all that it starts": async () => {
    const { env, withEnv, withEnvAndExports, withExports } = workers;
    equal(env.TEXT, "hello");
    deepEqual([withEnv({ TEXT: "other" }, () => env.TEXT), withEnv({}, () => env.TEXT), withEnv({ A: 1 }, () => Object.keys(env))], ["other", undefined, ["A"]]);
    const later = withEnv({ TEXT: "later" }, async () => {
      await scheduler.wait(1);
      return env.TEXT;
    });
    deepEqual([env.TEXT, await later, env.TEXT], ["hello", "later", "hello"]);
    equal(withExports({ a: 1 }, () => workers.exports.a), 1);
    deepEqual(withEnvAndExports({ a: 1 }, { b: 2 }, () => [env.a, workers.exports.b]), [1, 2]);
    throws(() => withEnv({}, 1), TypeError);
    throws(() => withEnv({}, () => { throw new RangeError("boom"); }), RangeError);
    equal(env.TEXT, "hello");
  },
  "env of the module can be listed and changed": () => {
    const { env } = workers;
    ok("TEXT" in env && Object.keys(env).includes("NUMBER") && { ...env }.NUMBER === 5);
    env.ADDED = 1;
    equal(env.ADDED, 1);
    ok(delete env.ADDED && !("ADDED" in env));
  },
  "custom spans call what they are given": () => {
    const { tracing } = workers;
    equal(tracing.enterSpan("name", (span, more) => span.setAttribute("a", 1).isTraced || more, 5), 5);
    throws(() => tracing.enterSpan("name"), TypeError);
    throws(() => tracing.enterSpan(), TypeError);
  },
  "all exports of cloudflare:workers are there": () => {
    const names = "DurableObject RpcPromise RpcProperty RpcStub RpcTarget ServiceStub WorkerEntrypoint WorkflowEntrypoint abortIsolate cache env exports restore tracing waitUntil withEnv withEnvAndExports withExports";
    deepEqual(names.split(" ").filter((name) => !(name in workers)), []);
    throws(() => workers.abortIsolate(), Error);
  },
};
