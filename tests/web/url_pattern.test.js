// https://urlpattern.spec.whatwg.org/
import { deepEqual, equal, ok, throws } from "./assert.js";

export const tests = {
  "a path with names": () => {
    const pattern = new URLPattern({ pathname: "/users/:id/*" });
    ok(pattern.test("https://a.example/users/5/x/y"));
    ok(pattern.test({ pathname: "/users/5/x" }));
    ok(!pattern.test("https://a.example/users/5"));
    const { pathname, inputs } = pattern.exec("https://a.example/users/5/x/y");
    deepEqual({ ...pathname.groups }, { id: "5", 0: "x/y" });
    equal(pathname.input, "/users/5/x/y");
    deepEqual(inputs, ["https://a.example/users/5/x/y"]);
    equal(pattern.exec("https://a.example/"), null);
  },
  "a complete URL and its parts": () => {
    const pattern = new URLPattern("https://:sub.example.com/a/(\\d+)\\?q=*#h");
    equal(pattern.protocol, "https");
    equal(pattern.hostname, ":sub.example.com");
    equal(pattern.pathname, "/a/(\\d+)");
    equal(pattern.search, "q=*");
    equal(pattern.hash, "h");
    equal(pattern.port, "");
    equal(pattern.username, "*");
    equal(pattern.password, "*");
    equal(pattern.hasRegExpGroups, true);
    equal(new URLPattern({ pathname: "/:a" }).hasRegExpGroups, false);
    equal(pattern.exec("https://x.example.com/a/7?q=1#h").hostname.groups.sub, "x");
  },
  "a base": () => {
    ok(new URLPattern("/a/*", "https://b.example").test("https://b.example/a/b"));
    ok(new URLPattern("/a/*", "https://b.example").test("/a/b", "https://b.example"));
    ok(!new URLPattern("/a/*", "https://b.example").test("https://c.example/a/b"));
    ok(new URLPattern({ pathname: "x", baseURL: "https://b.example/dir/" }).test("https://b.example/dir/x"));
    ok(new URLPattern("/A", "https://b.example", { ignoreCase: true }).test("https://b.example/a"));
    ok(new URLPattern({ pathname: "/A" }, { ignoreCase: true }).test({ pathname: "/a" }));
  },
  "components are normalized by the URL parser": () => {
    equal(new URLPattern({ protocol: "http", port: "80 " }).port, "80");
    equal(new URLPattern({ protocol: "http", port: "80" }).port, "");
    ok(new URLPattern({ port: "80" }).test({ port: "8\t0x" }));
    equal(new URLPattern({ hostname: "b\u00fccher.example#x" }).hostname, "xn--bcher-kva.example");
    equal(new URLPattern({ pathname: "/:a\u{10450}b" }).exec({ pathname: "/x" }).pathname.groups["a\u{10450}b"], "x");
    ok(new URLPattern("https://{sub.}?example{.com/}foo").test("https://example.com/foo"));
    throws(() => new URLPattern({ port: "99999" }), TypeError);
    throws(() => new URLPattern({ hostname: "a b" }), TypeError);
  },
  "expressions have sets": () => {
    const pattern = new URLPattern({ pathname: "/([[a-z]--a])" });
    ok(pattern.test({ pathname: "/z" }));
    ok(!pattern.test({ pathname: "/a" }));
  },
  "the text of a pattern parses to the same pattern": () => {
    for (const text of ["/:a{b}", "/:a(.*)", "/{:a}?b", "/a{/b}*", "{/:x-}+y", "/*/(.*)", "/:a{/:b}?", "/\\:x"]) {
      const once = new URLPattern({ pathname: text }).pathname;
      equal(new URLPattern({ pathname: once }).pathname, once);
    }
  },
  "a group may have the name of an object property": () => {
    const { groups } = new URLPattern({ pathname: "/:__proto__/:toString" }).exec({ pathname: "/a/b" }).pathname;
    deepEqual(Object.entries(groups), [["__proto__", "a"], ["toString", "b"]]);
  },
  "invalid patterns": () => {
    throws(() => new URLPattern("/relative"), TypeError);
    throws(() => new URLPattern({ pathname: "/(" }), TypeError);
    throws(() => new URLPattern({}, "https://a.example"), TypeError);
    throws(() => new URLPattern(null), TypeError);
    throws(() => URLPattern(), TypeError);
    throws(() => URLPattern.prototype.test.call({}), TypeError);
    equal(new URLPattern().test("not a url"), false);
    ok(new URLPattern().test("https://any.example/thing"));
  },
  "the shape of the interface": () => {
    equal(String(new URLPattern()), "[object URLPattern]");
    deepEqual(Reflect.ownKeys(new URLPattern()), []);
    equal(URLPattern.length, 0);
    ok(Object.keys(URLPattern.prototype).includes("hasRegExpGroups"));
  },
  "a worker that replaces URL does not change patterns": () => {
    const { URL: Kept } = globalThis;
    globalThis.URL = null;
    try {
      ok(new URLPattern("https://a.example/*").test("https://a.example/x"));
    } finally {
      globalThis.URL = Kept;
    }
  },
};
