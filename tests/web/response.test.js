// https://fetch.spec.whatwg.org/#response-class
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);

export const tests = {
  "a response without arguments": async () => {
    const response = new Response();
    equal(response.status, 200);
    equal(response.statusText, "");
    equal(response.type, "default");
    equal(response.url, "");
    equal(response.body, null);
    equal(response.ok, true);
    equal(response.redirected, false);
    equal(response.headers.get("content-type"), null);
    equal(await response.text(), "");
    equal(response.bodyUsed, false);
  },
  "the content type follows the body": () => {
    const type = (body, init) => new Response(body, init).headers.get("content-type");
    equal(type("x"), "text/plain;charset=UTF-8");
    equal(type(new URLSearchParams("a=b")), "application/x-www-form-urlencoded;charset=UTF-8");
    equal(type(bytes("x")), null);
    equal(type(new ArrayBuffer(1)), null);
    equal(type(new ReadableStream()), null);
    equal(type({}), "text/plain;charset=UTF-8");
    equal(type("x", { headers: { "Content-Type": "a/b" } }), "a/b");
    equal(type("x", { headers: { other: "1" } }), "text/plain;charset=UTF-8");
  },
  "every kind of body can be read in every way": async () => {
    for (const make of [
      () => '{"a":"é"}',
      () => bytes('{"a":"é"}'),
      () => bytes('{"a":"é"}').buffer,
      () => new DataView(bytes('{"a":"é"}').buffer),
      () => new Response('{"a":"é"}').body,
      () => ReadableStream.from([bytes('{"a":'), bytes('"é"}')]),
    ]) {
      equal(await new Response(make()).text(), '{"a":"é"}');
      deepEqual(await new Response(make()).json(), { a: "é" });
      equal((await new Response(make()).arrayBuffer()).byteLength, 10);
      const array = await new Response(make()).bytes();
      ok(array instanceof Uint8Array);
      deepEqual([...array], [...bytes('{"a":"é"}')]);
    }
    equal(await new Response(new URLSearchParams({ a: "b c" })).text(), "a=b+c");
    equal(await new Response(undefined).text(), "");
    equal(await new Response(5).text(), "5");
  },
  "the bytes of a view are only those it covers": async () => {
    const whole = bytes("0123456789");
    equal(await new Response(whole.subarray(2, 5)).text(), "234");
    equal((await new Response(whole.subarray(2, 5)).arrayBuffer()).byteLength, 3);
  },
  "bytes are copied when the response is made": async () => {
    const data = bytes("before");
    const response = new Response(data);
    data.set(bytes("after!"));
    equal(await response.text(), "before");
  },
  "a body can be used once": async () => {
    for (const body of ["x", bytes("x"), ReadableStream.from([bytes("x")])]) {
      const response = new Response(body);
      equal(response.bodyUsed, false);
      const first = response.text();
      equal(response.bodyUsed, true);
      await rejects(response.text(), TypeError);
      await first;
      equal(response.bodyUsed, true);
      await rejects(response.arrayBuffer(), TypeError);
      throws(() => response.clone(), TypeError);
      ok(response.body instanceof ReadableStream);
    }
  },
  "a locked body cannot be used": async () => {
    const response = new Response("x");
    const reader = response.body.getReader();
    equal(response.bodyUsed, false);
    await rejects(response.text(), TypeError);
    throws(() => response.clone(), TypeError);
    reader.releaseLock();
    equal(await response.text(), "x");
  },
  "the stream of a body is one object and gives the bytes": async () => {
    const response = new Response("hello");
    equal(response.body, response.body);
    const reader = response.body.getReader();
    const { value } = await reader.read();
    deepEqual([...value], [...bytes("hello")]);
    equal((await reader.read()).done, true);
    equal(response.bodyUsed, true);
  },
  "a body can be read into a given buffer": async () => {
    const reader = new Response("hello").body.getReader({ mode: "byob" });
    const first = await reader.read(new Uint8Array(3));
    deepEqual([...first.value], [...bytes("hel")]);
    const second = await reader.read(new Uint8Array(9));
    deepEqual([...second.value], [...bytes("lo")]);
    equal((await reader.read(new Uint8Array(9))).done, true);
  },
  "a used or locked stream cannot be a body": async () => {
    const locked = new ReadableStream();
    locked.getReader();
    throws(() => new Response(locked), TypeError);
    const used = new Response("x").body;
    const reader = used.getReader();
    await reader.read();
    reader.releaseLock();
    throws(() => new Response(used), TypeError);
  },
  "a stream of values other than bytes is an error": async () => {
    await rejects(new Response(ReadableStream.from(["text"])).text(), TypeError);
    const broken = new ReadableStream({ start: (controller) => controller.error(new RangeError("broken")) });
    await rejects(new Response(broken).text(), RangeError);
  },
  "a then on Object.prototype has no effect": async () => {
    const make = () => new Response(ReadableStream.from([bytes("hello")]));
    const responses = [make(), new Response(bytes("hello")), new Response("hello")];
    for (const response of responses) {
      Object.prototype.then = (onFulfilled) => {
        delete Object.prototype.then;
        onFulfilled({ done: false, value: bytes("bye") });
      };
      let text;
      try {
        text = response.text();
      } finally {
        delete Object.prototype.then;
      }
      equal(await text, "hello");
    }
  },
  "a body of many available chunks": async () => {
    const stream = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 20_000; i++) controller.enqueue(new Uint8Array(1));
        controller.close();
      },
    });
    equal((await new Response(stream).bytes()).length, 20_000);
  },
  "a stream that was read stays locked": async () => {
    const response = new Response(ReadableStream.from([bytes("x")]));
    await response.text();
    ok(response.body.locked);
    ok(response.bodyUsed);
  },
  "text drops a byte order mark and replaces malformed bytes": async () => {
    equal(await new Response("\uFEFFa").text(), "a");
    equal(await new Response("\ud800a").text(), "\uFFFDa");
    equal(await new Response(new Uint8Array([0xff, 0x61])).text(), "\uFFFDa");
    deepEqual(await new Response("\uFEFF[1]").json(), [1]);
  },
  "json of invalid JSON is a SyntaxError": async () => {
    await rejects(new Response("{").json(), SyntaxError);
    await rejects(new Response("").json(), SyntaxError);
  },
  "a status is in 200 to 599": () => {
    for (const status of [0, 100, 101, 199, 600, 65536, -1, NaN, "abc", 1e9]) {
      throws(() => new Response("", { status }), RangeError, String(status));
    }
    equal(new Response(null, { status: 204 }).status, 204);
    equal(new Response("", { status: "404" }).status, 404);
    equal(new Response("", { status: 404.9 }).status, 404);
    equal(new Response("", { status: 404 }).ok, false);
  },
  "some statuses have no body": () => {
    for (const status of [204, 205, 304]) {
      throws(() => new Response("x", { status }), TypeError);
      throws(() => new Response(new ReadableStream(), { status }), TypeError);
      for (const empty of ["", new Uint8Array(0), new Blob([]), new FixedLengthStream(0).readable]) {
        const response = new Response(empty, { status });
        deepEqual([response.status, response.body, response.headers.get("content-type")], [status, null, null]);
      }
      throws(() => Response.json({}, { status }), TypeError);
      equal(new Response(null, { status }).status, status);
    }
  },
  "a status text cannot break the line": () => {
    for (const statusText of ["a\r\nb", "a\n", "\0", "\u0100"]) {
      throws(() => new Response("", { statusText }), TypeError);
    }
    equal(new Response("", { statusText: "Fine\xff\t" }).statusText, "Fine\xff\t");
  },
  "a wrong init is refused": () => {
    throws(() => new Response("", 5), TypeError);
    throws(() => new Response("", "x"), TypeError);
    throws(() => new Response("", { headers: null }), TypeError);
    equal(new Response("", null).status, 200);
    throws(() => new Response(Symbol("s")), TypeError);
  },
  "Response.json": async () => {
    const response = Response.json({ a: [1, null] }, { status: 201, headers: { "x-a": "b" } });
    equal(response.status, 201);
    equal(response.headers.get("content-type"), "application/json");
    equal(response.headers.get("x-a"), "b");
    equal(await response.text(), '{"a":[1,null]}');
    equal(Response.json(1, { headers: { "content-type": "a/b" } }).headers.get("content-type"), "a/b");
    throws(() => Response.json(undefined), TypeError);
    throws(() => Response.json(Symbol("s")), TypeError);
    throws(() => Response.json(10n), TypeError);
    throws(() => Response.json(), TypeError);
  },
  "Response.redirect": () => {
    const response = Response.redirect("https://example.com/ä?b");
    equal(response.status, 302);
    equal(response.headers.get("location"), "https://example.com/%C3%A4?b");
    equal(response.body, null);
    equal(Response.redirect(new URL("http://a/"), 308).status, 308);
    throws(() => response.headers.set("a", "b"), TypeError);
    throws(() => Response.redirect("/relative"), TypeError);
    throws(() => Response.redirect("http://a/", 200), RangeError);
    throws(() => Response.redirect("http://a/", 304), RangeError);
  },
  "Response.error": () => {
    const response = Response.error();
    equal(response.type, "error");
    equal(response.status, 0);
    equal(response.ok, false);
    throws(() => response.headers.append("a", "b"), TypeError);
  },
  "a clone has its own headers and the same content": async () => {
    const response = new Response("content", { status: 201, statusText: "Made", headers: { a: "1" } });
    const copy = response.clone();
    copy.headers.set("a", "2");
    equal(response.headers.get("a"), "1");
    equal(copy.status, 201);
    equal(copy.statusText, "Made");
    equal(await response.text(), "content");
    equal(copy.bodyUsed, false);
    equal(await copy.text(), "content");
  },
  "clones of bytes do not share them": async () => {
    const response = new Response(bytes("abc"));
    const copy = response.clone();
    (await response.bytes())[0] = 0;
    equal(await copy.text(), "abc");
  },
  "both clones of a stream get all data": async () => {
    const response = new Response(ReadableStream.from([bytes("one "), bytes("two")]));
    const copy = response.clone();
    const [first, second] = await Promise.all([response.text(), copy.text()]);
    equal(first, "one two");
    equal(second, "one two");
  },
  "a response can be made from another": async () => {
    const first = new Response("content", { status: 404, headers: { "x-a": "1" } });
    const second = new Response(first.body, first);
    second.headers.set("x-b", "2");
    equal(second.status, 404);
    equal(second.headers.get("x-a"), "1");
    equal(first.headers.get("x-b"), null);
    equal(await second.text(), "content");
    equal(first.bodyUsed, true);
  },
  "a large body": async () => {
    const text = "é".repeat(3_000_000);
    const buffer = await new Response(text).arrayBuffer();
    equal(buffer.byteLength, 6_000_000);
    equal(await new Response(buffer).text(), text);
  },
  "internals cannot be reached": () => {
    const response = new Response("x");
    deepEqual(Reflect.ownKeys(response), []);
    throws(() => Object.getOwnPropertyDescriptor(Response.prototype, "status").get.call({}), TypeError);
    throws(() => Response("x"), TypeError);
    equal(Object.prototype.toString.call(response), "[object Response]");
  },
  "textStream decodes the body in pieces": async () => {
    const bytes = new TextEncoder().encode("\u20acuro");
    const body = ReadableStream.from([bytes.slice(0, 1), bytes.slice(1)]);
    const response = new Response(body);
    let text = "";
    for await (const piece of response.textStream()) text += piece;
    equal(text, "\u20acuro");
    equal(response.bodyUsed, true);
    throws(() => response.textStream(), TypeError);
    deepEqual(await Array.fromAsync(new Response().textStream()), []);
  },
};
