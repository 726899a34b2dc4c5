// https://fetch.spec.whatwg.org/#dom-request, the members of RequestInit
import { deepEqual, equal, ok, throws } from "./assert.js";

const make = (init, input = "http://a.example/") => new Request(input, init);

export const tests = {
  "members are read once, in the order of Web IDL": () => {
    const seen = [];
    const init = new Proxy({}, {
      get(_, name) {
        seen.push(name);
        return undefined;
      },
    });
    make(init);
    deepEqual(seen, [
      "body", "cache", "cf", "credentials", "duplex", "headers", "integrity", "keepalive", "method", "mode", "priority", "redirect",
      "referrer", "referrerPolicy", "signal", "window",
    ]);
  },
  "visible and forwarded members": () => {
    const init = {
      cache: "no-store", cf: { cacheTtl: 5 }, credentials: "include", integrity: "sha256-x", keepalive: true, mode: "same-origin",
      redirect: "manual", referrer: "http://b.example/x", referrerPolicy: "origin",
    };
    const request = make(init);
    for (const copy of [request, request.clone(), new Request(request), new Request(request, {})]) {
      for (const [name, value] of Object.entries(init)) equal(copy[name], value, name);
      equal(copy.duplex, "half");
      equal(copy.destination, "");
    }
    equal(new Request(request, { redirect: "error" }).redirect, "error");
    equal(new Request(request, { redirect: "error" }).cache, "no-store");
    equal(make().cf, undefined);
    equal(make({ referrer: "" }).referrer, "");
    equal(make().referrer, "about:client");
  },
  "wrong members": () => {
    for (const init of [
      { cache: "x" }, { cache: "only-if-cached" }, { credentials: "x" }, { duplex: "full" }, { mode: "navigate" }, { mode: "x" },
      { priority: "x" }, { redirect: "x" }, { referrer: "http://:" }, { referrerPolicy: "x" }, { signal: {} }, { window: "x" },
      { method: "" }, { method: "a b" }, { method: "CONNECT" }, { method: "track" }, { method: "é" }, { headers: 1 }, { cf: 1 },
      { method: "PUT", mode: "no-cors" }, { body: "x" }, { method: "HEAD", body: "" }, 1, "x",
    ]) {
      throws(() => make(init), TypeError, JSON.stringify(init));
    }
    for (const wrong of ["", "/path", "http://"]) throws(() => new Request(wrong), TypeError, wrong);
    throws(() => new Request(), TypeError);
    make({ cache: "only-if-cached", mode: "same-origin" });
    make(null);
    make({ window: null, signal: null, body: null, duplex: "half" });
  },
  "a stream as body": () => {
    const init = { method: "POST", body: new ReadableStream() };
    throws(() => make({ ...init, duplex: "half", keepalive: true }), TypeError);
    throws(() => make({ ...init, duplex: "half", mode: "no-cors" }), TypeError);
    const request = make({ ...init, duplex: "half" });
    equal(request.headers.get("content-type"), null);
    ok(request.body instanceof ReadableStream);
  },
  "a request made from another takes its body": async () => {
    const first = make({ method: "POST", body: "content" });
    const second = new Request(first);
    ok(first.bodyUsed);
    equal(second.headers.get("content-type"), "text/plain;charset=UTF-8");
    throws(() => new Request(first), TypeError);
    equal(await new Request(first, { body: "other" }).text(), "other");
    equal(await second.text(), "content");
    throws(() => new Request(make({ method: "POST", body: "x" }), { method: "GET" }), TypeError);
  },
  "a failed construction leaves the given request unchanged": () => {
    const first = make({ method: "POST", body: "content" });
    throws(() => new Request(first, { mode: "navigate" }), TypeError);
    throws(() => new Request(first, { headers: { "a b": "c" } }), TypeError);
    equal(first.bodyUsed, false);
  },
  "signals follow": () => {
    const controller = new AbortController();
    const first = make({ signal: controller.signal });
    const second = new Request(first);
    const apart = new Request(first, { signal: null });
    const third = second.clone();
    controller.abort("why");
    equal(first.signal.reason, "why");
    equal(second.signal.reason, "why");
    equal(third.signal.reason, "why");
    equal(apart.signal.aborted, false);
    equal(new Request(first).signal.aborted, true);
  },
  "methods": () => {
    for (const [given, kept] of [["get", "GET"], ["pOST", "POST"], ["patch", "PATCH"], ["PATCH", "PATCH"], ["propFind", "PROPFIND"]]) {
      equal(make({ method: given }).method, kept);
    }
  },
  "Response takes cf and encodeBody": () => {
    const cf = { a: 1 };
    equal(new Response("", { cf }).cf, cf);
    equal(new Response("", { cf }).clone().cf, cf);
    new Response("", { encodeBody: "manual" });
    throws(() => new Response("", { encodeBody: "x" }), TypeError);
  },
  "a clone of a stream of objects gets its own objects": async () => {
    const chunk = new Uint8Array([1]);
    const response = new Response(new ReadableStream({ start: (controller) => controller.enqueue(chunk) }));
    const copy = response.clone();
    const [a, b] = await Promise.all([response.body.getReader().read(), copy.body.getReader().read()]);
    equal(a.value, chunk);
    ok(b.value !== chunk);
    deepEqual([...b.value], [1]);
  },
};
