// https://fetch.spec.whatwg.org/#request-class
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);

export const tests = {
  "a request of an address": async () => {
    const request = new Request("http://EXAMPLE.com/a/../b");
    equal(request.url, "http://example.com/b");
    equal(request.method, "GET");
    equal(request.body, null);
    equal(request.bodyUsed, false);
    equal(request.redirect, "follow");
    equal(request.mode, "cors");
    equal(request.credentials, "same-origin");
    equal(request.cache, "default");
    equal(request.referrer, "about:client");
    equal(request.referrerPolicy, "");
    equal(request.integrity, "");
    equal(request.keepalive, false);
    equal(request.destination, "");
    equal(request.duplex, "half");
    ok(request.signal instanceof AbortSignal);
    equal(request.signal.aborted, false);
    equal(request.signal, request.signal);
    equal(await request.text(), "");
    equal(new Request(new URL("http://a/b")).url, "http://a/b");
  },
  "an address must be absolute": () => {
    throws(() => new Request("/path"), TypeError);
    throws(() => new Request(""), TypeError);
    equal(new Request("http://user:secret@example.com/").url, "http://user:secret@example.com/");
    throws(() => new Request(), TypeError);
    equal(new Request("http://a/#hash").url, "http://a/#hash");
  },
  "methods are in upper case, and unknown ones are refused": () => {
    const method = (name) => new Request("http://a/", { method: name }).method;
    equal(method("get"), "GET");
    equal(method("pOsT"), "POST");
    equal(method("delete"), "DELETE");
    equal(method("patch"), "PATCH");
    equal(method("trace"), "TRACE");
    equal(method("PATCH"), "PATCH");
    equal(method("PURGE"), "PURGE");
    for (const name of ["CONNECT", "TRACK", "FOO", "", "a b", "GET\r\n", "é", "\0"]) throws(() => method(name), TypeError, name);
  },
  "options are checked": () => {
    const make = (init) => new Request("http://a/", init);
    equal(make({ redirect: "manual" }).redirect, "manual");
    equal(make({ mode: "same-origin", cache: "only-if-cached" }).cache, "only-if-cached");
    equal(make({ credentials: "omit" }).credentials, "omit");
    equal(make({ referrer: "" }).referrer, "");
    equal(make({ referrer: "http://b" }).referrer, "http://b/");
    equal(make({ keepalive: 1 }).keepalive, true);
    equal(make({ integrity: "sha256-x" }).integrity, "sha256-x");
    for (const init of [
      { redirect: "other" }, { mode: "navigate" }, { mode: "x" }, { cache: "only-if-cached" }, { credentials: 1 },
      { referrer: "no url" }, { referrerPolicy: "x" }, { window: {} }, { signal: {} }, { signal: 5 }, { priority: "x" },
    ]) {
      throws(() => make(init), TypeError, JSON.stringify(init));
    }
    throws(() => make(5), TypeError);
    equal(make(null).method, "GET");
    equal(make({ signal: null }).signal.aborted, false);
  },
  "GET and HEAD have no body": () => {
    throws(() => new Request("http://a/", { body: "x" }), TypeError);
    throws(() => new Request("http://a/", { method: "HEAD", body: "" }), TypeError);
    equal(new Request("http://a/", { body: null }).body, null);
  },
  "a body and its type": async () => {
    const make = (body, more) => new Request("http://a/", { method: "POST", body, ...more });
    equal(make("x").headers.get("content-type"), "text/plain;charset=UTF-8");
    equal(make("x", { headers: { "Content-Type": "a/b" } }).headers.get("content-type"), "a/b");
    equal(make(bytes("x")).headers.get("content-type"), null);
    deepEqual(await make('{"a":1}').json(), { a: 1 });
    equal((await make(bytes("abc")).arrayBuffer()).byteLength, 3);
    equal((await make(bytes("abc")).bytes()).length, 3);
    equal(await make(new URLSearchParams("a=1")).text(), "a=1");
  },
  "a stream as body may say duplex half": async () => {
    const stream = () => ReadableStream.from([bytes("a"), bytes("b")]);
    equal(await new Request("http://a/", { method: "POST", body: stream() }).text(), "ab");
    throws(() => new Request("http://a/", { method: "POST", body: stream(), duplex: "full" }), TypeError);
    const request = new Request("http://a/", { method: "POST", body: stream(), duplex: "half" });
    equal(await request.text(), "ab");
    equal(request.bodyUsed, true);
  },
  "a request from a request takes its body": async () => {
    const first = new Request("http://a/", { method: "POST", body: "content", headers: { a: "1" } });
    const second = new Request(first, { headers: { b: "2" } });
    equal(first.bodyUsed, true);
    equal(second.method, "POST");
    equal(second.headers.get("a"), null);
    equal(second.headers.get("b"), "2");
    equal(await second.text(), "content");
    await rejects(first.text(), TypeError);
    throws(() => new Request(first), TypeError);
  },
  "a request from a request whose stream was accessed": async () => {
    const first = new Request("http://a/", { method: "POST", body: "content" });
    ok(first.body instanceof ReadableStream);
    const second = new Request(first);
    equal(first.bodyUsed, true);
    ok(first.body.locked);
    equal(await second.text(), "content");
    const third = new Request("http://a/", { method: "POST", body: ReadableStream.from([bytes("s")]), duplex: "half" });
    equal(await new Request(third).text(), "s");
    equal(third.bodyUsed, true);
  },
  "a request from a request with another body leaves its own": async () => {
    const first = new Request("http://a/", { method: "POST", body: "one" });
    const second = new Request(first, { method: "PUT", body: "two" });
    equal(second.method, "PUT");
    equal(await second.text(), "two");
    equal(await first.text(), "one");
    equal(new Request(first, { method: "PUT", body: "three" }).url, "http://a/");
  },
  "a signal is followed": () => {
    const controller = new AbortController();
    const request = new Request("http://a/", { signal: controller.signal });
    ok(request.signal !== controller.signal);
    const copy = request.clone();
    const other = new Request(request);
    let count = 0;
    for (const each of [request, copy, other]) each.signal.addEventListener("abort", () => count++);
    controller.abort("why");
    equal(count, 3);
    equal(copy.signal.reason, "why");
    equal(new Request(request).signal.aborted, true);
    equal(new Request(request, { signal: null }).signal.aborted, false);
  },
  "a clone": async () => {
    const request = new Request("http://a/", { method: "POST", body: "content", headers: { a: "1" } });
    const copy = request.clone();
    copy.headers.set("a", "2");
    equal(request.headers.get("a"), "1");
    equal(await request.text(), "content");
    equal(await copy.text(), "content");
    throws(() => copy.clone(), TypeError);
  },
  "headers of a request can be changed": () => {
    const request = new Request("http://a/", { headers: [["A", "1"]] });
    request.headers.append("a", "2");
    equal(request.headers.get("a"), "1, 2");
    equal(request.headers, request.headers);
  },
  "internals cannot be reached": async () => {
    deepEqual(Reflect.ownKeys(new Request("http://a/")), []);
    equal(String(new Request("http://a/")), "[object Request]");
    throws(() => Request.prototype.clone.call({}), TypeError);
    await rejects(Request.prototype.text.call({}), TypeError);
  },
};
