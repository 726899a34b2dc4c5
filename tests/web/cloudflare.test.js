// Behaviours of Cloudflare's runtime that code relies on, beyond the standards.
import { mock } from "node:test";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);
const pending = Symbol("pending");
/** The value of a promise, or `pending` if it does not settle on its own. */
const soon = (promise) => Promise.race([promise, scheduler.wait(20).then(() => pending)]);

async function collect(stream) {
  const parts = [];
  for await (const chunk of stream) parts.push(...chunk);
  return new TextDecoder().decode(new Uint8Array(parts));
}

export const tests = {
  "the runtime tells who it is": () => {
    equal(navigator.userAgent, "Cloudflare-Workers");
    equal(Object.prototype.toString.call(Cloudflare), "[object Cloudflare]");
    const flags = Cloudflare.compatibilityFlags;
    ok(Object.isFrozen(flags) && Object.getPrototypeOf(flags) === null);
    deepEqual([flags.nodejs_compat, flags.url_standard, flags.python_workers, flags.no_nodejs_compat], [true, true, false, undefined]);
    ok(Object.keys(flags).length > 200 && Object.values(flags).every((value) => typeof value === "boolean"));
  },
  "a beacon is sent while a call runs": () => {
    equal(typeof navigator.sendBeacon, "function");
    equal(navigator.sendBeacon("http://beacon.invalid/", "x"), true);
    equal(navigator.sendBeacon("not a URL"), true); // it fails later, unseen
    throws(() => navigator.sendBeacon(), TypeError);
  },
  "compression settles with nobody reading": async () => {
    const zip = new CompressionStream("gzip");
    const writer = zip.writable.getWriter();
    for (let i = 0; i < 20; i++) equal(await soon(writer.write(new Uint8Array(100_000))), undefined);
    equal(await soon(writer.write("text")), undefined);
    equal(await soon(writer.close()), undefined);
    const out = await new Response(zip.readable.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
    equal(out.byteLength, 2_000_004);
    const byob = new CompressionStream("gzip");
    byob.writable.getWriter().write("x");
    byob.readable.getReader({ mode: "byob" });
  },
  "what nobody reads of a decompression is bounded": async () => {
    const zeros = new CompressionStream("deflate");
    const writer = zeros.writable.getWriter();
    for (let i = 0; i < 20; i++) writer.write(new Uint8Array(1_000_000));
    writer.close();
    const packed = await new Response(zeros.readable).bytes();
    const bomb = new DecompressionStream("deflate");
    const pump = bomb.writable.getWriter();
    equal(await soon(pump.write(packed)), pending);
    let size = 0;
    const reader = bomb.readable.getReader();
    pump.close();
    for (let step = await reader.read(); !step.done; step = await reader.read()) size += step.value.length;
    equal(size, 20_000_000);
  },
  "bad input rejects the write that brings it": async () => {
    const writer = new DecompressionStream("gzip").writable.getWriter();
    writer.closed.catch(() => {});
    equal((await rejects(writer.write("not gzip at all"), TypeError)).message, "Decompression failed.");
    const early = new DecompressionStream("gzip").writable.getWriter();
    early.closed.catch(() => {});
    await early.write(new Uint8Array([31, 139, 8]));
    equal((await rejects(early.close(), TypeError)).message, "Called close() on a decompression stream with incomplete data");
    equal(throws(() => new CompressionStream("br"), TypeError).message, "The compression format must be either 'deflate', 'deflate-raw' or 'gzip'.");
  },
  "readAtLeast returns the tail, then the end": async () => {
    const stream = new ReadableStream({ type: "bytes", start(controller) { controller.enqueue(new Uint8Array(3)); controller.close(); } });
    const reader = stream.getReader({ mode: "byob" });
    const tail = await reader.readAtLeast(5, new Uint8Array(8));
    deepEqual([tail.done, tail.value.length], [false, 3]);
    const end = await reader.readAtLeast(5, new Uint8Array(8));
    deepEqual([end.done, end.value.length], [true, 0]);
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    writer.write(new Uint8Array(4));
    writer.write(new Uint8Array(1));
    writer.close();
    const other = readable.getReader({ mode: "byob" });
    equal((await other.readAtLeast(4, new Uint8Array(9))).value.length, 4);
    const last = await other.readAtLeast(4, new Uint8Array(9));
    deepEqual([last.done, last.value.length, (await other.readAtLeast(4, new Uint8Array(9))).done], [false, 1, true]);
  },
  "a byte stream has a byobRequest for every reader": async () => {
    const seen = [];
    const make = () => new ReadableStream({
      type: "bytes",
      pull(controller) {
        const { byobRequest } = controller;
        seen.push([byobRequest.view.byteLength, byobRequest.atLeast]);
        byobRequest.respond(Math.max(1, byobRequest.atLeast));
      },
    });
    equal((await make().getReader().read()).value.length, 1);
    equal((await make().getReader({ mode: "byob" }).readAtLeast(3, new Uint8Array(10))).value.length, 3);
    deepEqual(seen, [[4096, 1], [10, 3]]);
  },
  "close() settles a pending BYOB read": async () => {
    let controller;
    const reader = new ReadableStream({ type: "bytes", start: (given) => void (controller = given) }).getReader({ mode: "byob" });
    const read = reader.read(new Uint8Array(4));
    await null;
    const request = controller.byobRequest;
    controller.close();
    const { done, value } = await soon(read);
    deepEqual([done, value.byteLength], [true, 0]);
    request.respond(0); // as the standard wants it, and too late to matter
  },
  "a start() that throws makes a failed stream": async () => {
    const start = () => { throw new RangeError("boom"); };
    await rejects(new ReadableStream({ start }).getReader().read(), RangeError);
    await rejects(new ReadableStream({ type: "bytes", start }).getReader().read(), RangeError);
    await rejects(new WritableStream({ start }).getWriter().write(1), RangeError);
    await rejects(new TransformStream({ start }).readable.getReader().read(), RangeError);
  },
  "cancel() of one branch settles at once": async () => {
    let reason;
    const [one, two] = new ReadableStream({ cancel: (why) => void (reason = why) }).tee();
    equal(await soon(one.cancel("first")), undefined);
    equal(reason, undefined);
    equal(await soon(two.cancel("second")), undefined);
    equal(reason, "second");
  },
  "releaseLock() drops writes that have not begun": async () => {
    const got = [];
    let finish;
    const stream = new WritableStream({ write(chunk) { got.push(chunk); return new Promise((resolve) => (finish = resolve)); } });
    const writer = stream.getWriter();
    await writer.ready;
    const [first, second, third] = [writer.write(1), writer.write(2), writer.write(3)];
    writer.releaseLock();
    for (const dropped of [second, third]) equal((await rejects(dropped, TypeError)).message, "This WritableStream writer has been released.");
    finish();
    await first;
    const next = stream.getWriter();
    const fourth = next.write(4);
    await scheduler.wait(1);
    finish();
    await fourth;
    deepEqual(got, [1, 4]);
  },
  "bodies from iterables": async () => {
    function* some() { yield bytes("a"); yield bytes("b"); }
    async function* later() { yield* some(); }
    equal(await new Response(some()).text(), "ab");
    equal(await new Response(later()).text(), "ab");
    equal(await new Request("http://a/", { method: "POST", body: [bytes("c")] }).text(), "c");
    equal(await collect(new Response(later()).body), "ab");
    deepEqual([new Response(some()).headers.get("content-type"), new Response(new String("s")).headers.get("content-type")], [null, "text/plain;charset=UTF-8"]);
    equal(await new Response({ toString: () => "own", *[Symbol.iterator]() { yield bytes("x"); } }).text(), "own");
    await rejects(new Response(["text"]).text(), TypeError);
  },
  "multipart with LF and a preamble": async () => {
    const parse = (text) => new Response(text, { headers: { "content-type": "multipart/form-data; boundary=b" } }).formData();
    const part = 'Content-Disposition: form-data; name="x"';
    deepEqual([...(await parse(`preamble\n--b\n${part}\n\nhello\n--b--\n`))], [["x", "hello"]]);
    deepEqual([...(await parse(`\r\n--b\r\n${part}\n\r\none\n--b\n${part}\n\ntwo\r\n--b--epilogue`))], [["x", "one"], ["x", "two"]]);
    const escaped = 'Content-Disposition: form-data; name="a\\"b\\\\"; filename="c\\\\d.txt"';
    const [[name, file]] = await parse(`--b\r\n${escaped}\r\n\r\nx\r\n--b--`);
    deepEqual([name, file.name], ['a"b\\', "c\\d.txt"]);
    equal((await rejects(parse("nothing"), TypeError)).message, "No initial boundary string (or you have a truncated message).");
    equal((await rejects(parse(`--b\r\n${part}\r\n\r\nx`), TypeError)).message, "No subsequent boundary string after multipart message.");
  },
  "structuredClone of headers, requests and responses": () => {
    const headers = structuredClone(new Headers([["a", "b"], ["set-cookie", "x"], ["set-cookie", "y"]]));
    ok(headers instanceof Headers);
    deepEqual([...headers], [["a", "b"], ["set-cookie", "x"], ["set-cookie", "y"]]);
    headers.set("a", "c");
    const request = structuredClone(new Request("http://a/b", { method: "PUT", headers: { q: "1" } }));
    deepEqual([request instanceof Request, request.url, request.method, request.headers.get("q")], [true, "http://a/b", "PUT", "1"]);
    equal(structuredClone({ deep: [new Response(null, { status: 201 })] }).deep[0].status, 201);
    equal(throws(() => structuredClone(new Response("x"))).name, "DataCloneError");
  },
  "NODE-ED25519": async () => {
    const { subtle } = crypto;
    const algorithm = { name: "NODE-ED25519", namedCurve: "NODE-ED25519" };
    const { publicKey, privateKey } = await subtle.generateKey(algorithm, true, ["sign", "verify"]);
    deepEqual(publicKey.algorithm, algorithm);
    const signature = await subtle.sign("NODE-ED25519", privateKey, bytes("m"));
    equal(await subtle.verify(algorithm, publicKey, signature, bytes("m")), true);
    const raw = await subtle.exportKey("raw", publicKey);
    const again = await subtle.importKey("raw", raw, algorithm, true, ["verify"]);
    equal(await subtle.verify("NODE-ED25519", again, signature, bytes("m")), true);
    const jwk = await subtle.exportKey("jwk", privateKey);
    deepEqual([jwk.crv, jwk.kty], ["Ed25519", "OKP"]);
    equal((await subtle.importKey("jwk", jwk, algorithm, false, ["sign"])).type, "private");
    const plain = await subtle.importKey("raw", raw, "Ed25519", true, ["verify"]);
    equal(await subtle.verify("Ed25519", plain, signature, bytes("m")), true);
    await rejects(subtle.generateKey({ ...algorithm, namedCurve: "P-256" }, true, ["sign"]));
  },
  "timers are objects under nodejs_compat": async () => {
    let calls = 0;
    const timer = setTimeout(() => calls++, 1);
    equal(timer.constructor.name, "Timeout");
    deepEqual([timer.hasRef(), timer.unref() === timer, timer.hasRef(), timer.ref().hasRef(), typeof +timer], [true, true, false, true, "number"]);
    clearTimeout(+timer);
    await scheduler.wait(3);
    equal(calls, 0);
    timer.refresh();
    await scheduler.wait(3);
    equal(calls, 1);
    {
      using gone = setInterval(() => calls++, 1);
      ok(gone);
    }
    clearImmediate(setImmediate(() => calls++));
    const { promise, resolve } = Promise.withResolvers();
    equal(setImmediate(resolve).constructor.name, "Immediate");
    await promise;
    await scheduler.wait(3);
    equal(calls, 1);
    throws(() => setTimeout(5), TypeError);
  },
  "mocks of node:test": () => {
    const add = mock.fn((a, b) => a + b);
    equal(add(1, 2), 3);
    add.mock.mockImplementationOnce(() => 9);
    deepEqual([add(1, 1), add(1, 1), add.mock.callCount()], [9, 2, 3]);
    deepEqual([add.mock.calls[0].arguments, add.mock.calls[0].result], [[1, 2], 3]);
    const object = { get: () => "real" };
    mock.method(object, "get", () => "mock");
    equal(object.get(), "mock");
    mock.restoreAll();
    equal(object.get(), "real");
    const broken = mock.fn(() => { throw new RangeError("x"); });
    throws(broken, RangeError);
    equal(broken.mock.calls[0].error.message, "x");
  },
  "an EventSource can be disposed": () => {
    const source = EventSource.from(new ReadableStream());
    source[Symbol.dispose]();
    equal(source.readyState, EventSource.CLOSED);
  },
  "an interval of 0 ticks first at once": async () => {
    const log = [];
    const { promise, resolve } = Promise.withResolvers();
    const interval = setInterval(() => log.push("interval"), 0);
    setTimeout(() => { log.push("timeout"); resolve(); }, 0);
    await promise;
    clearInterval(interval);
    deepEqual(log, ["interval", "timeout"]);
  },
  "an algorithm's name is read once": async () => {
    let reads = 0;
    const algorithm = { get name() { reads++; return "AES-CBC"; }, length: 128 };
    await crypto.subtle.generateKey(algorithm, true, ["encrypt"]);
    equal(reads, 1);
  },
  "ASCII hosts that are no valid Punycode": () => {
    for (const host of ["xn--a", "xn--", "xn--a-.com", "xn--0.pt", "a.xn--pokxncvks.de"]) {
      const url = new URL(`http://user:pw@${host.toUpperCase()}:81/xn--p?q#xn--h`);
      deepEqual([url.host, url.href], [`${host}:81`, `http://user:pw@${host}:81/xn--p?q#xn--h`]);
      equal(new URL("/x", url).href, `http://user:pw@${host}:81/x`);
      url.port = "";
      url.pathname = "/new";
      equal(url.href, `http://user:pw@${host}/new?q#xn--h`);
      ok(URL.canParse(`https://${host}`));
      equal(URL.parse(`//${host}/y`, "ws://z").href, `ws://${host}/y`);
    }
    const url = new URL("http://a/");
    url.host = "XN--A:8080";
    equal(url.href, "http://xn--a:8080/");
    url.hostname = "xn--é";
    equal(url.hostname, "xn--a");
    for (const bad of ["http://xn--é/", "http://xn--a b/", "http://%78n--a/", "http://xn--a:99999/"]) equal(URL.parse(bad), null, bad);
    equal(new URL("http://xn--fa-hia.de/").host, "xn--fa-hia.de");
  },
};
