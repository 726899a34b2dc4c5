// https://url.spec.whatwg.org/#url-class
import { deepEqual, equal, ok, throws } from "./assert.js";

export const tests = {
  "all parts of a URL": () => {
    const url = new URL("https://user:pass%20word@Example.COM:8443/a/./b/../c?x=1&y=2#frag");
    deepEqual(
      [url.href, url.origin, url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname,
        url.search, url.hash],
      ["https://user:pass%20word@example.com:8443/a/c?x=1&y=2#frag", "https://example.com:8443", "https:", "user",
        "pass%20word", "example.com:8443", "example.com", "8443", "/a/c", "?x=1&y=2", "#frag"],
    );
    equal(String(url), url.href);
    equal(JSON.stringify({ url }), `{"url":"${url.href}"}`);
  },
  "absent parts are empty": () => {
    const url = new URL("http://example.com");
    deepEqual([url.username, url.password, url.port, url.pathname, url.search, url.hash], ["", "", "", "/", "", ""]);
    deepEqual([new URL("http://a/?").search, new URL("http://a/#").hash, new URL("http://a/?").href], ["", "", "http://a/?"]);
    equal(new URL("http://a:80/").port, "");
    equal(new URL("https://@a/").username, "");
    equal(new URL("http://user@a/").username, "user");
    equal(new URL("http://:pw@a/").password, "pw");
  },
  "hosts of all kinds": () => {
    equal(new URL("http://[::1]:81/").host, "[::1]:81");
    equal(new URL("http://[2001:DB8::0:1]/").hostname, "[2001:db8::1]");
    equal(new URL("http://127.1/").hostname, "127.0.0.1");
    equal(new URL("http://0x7f000001/").hostname, "127.0.0.1");
    equal(new URL("http://münchen.de/").hostname, "xn--mnchen-3ya.de");
    equal(new URL("file:///etc/passwd").host, "");
    equal(new URL("web+demo:/.//not-a-host/").pathname, "//not-a-host/");
    equal(new URL("web+demo:/.//not-a-host/").host, "");
  },
  "origins": () => {
    equal(new URL("blob:https://example.com/id").origin, "https://example.com");
    equal(new URL("data:text/plain,x").origin, "null");
    equal(new URL("file:///x").origin, "null");
    equal(new URL("ws://a:81/").origin, "ws://a:81");
    equal(new URL("blob:d3958f5c").origin, "null");
  },
  "URLs relative to a base": () => {
    equal(new URL("../x?y", "http://a/b/c/d").href, "http://a/b/x?y");
    equal(new URL("//b/c", "https://a/").href, "https://b/c");
    equal(new URL("", "http://a/b?c#d").href, "http://a/b?c");
    equal(new URL("?x", new URL("http://a/b")).href, "http://a/b?x");
  },
  "an invalid URL throws": () => {
    for (const input of ["", "nothing", "http://", "http://a b/", "http://a:99999/", "//x", "http://[::1", "http://%00/"]) {
      throws(() => new URL(input), TypeError, input);
      equal(URL.canParse(input), false);
      equal(URL.parse(input), null);
    }
    throws(() => new URL("/x", "also nothing"), TypeError);
    throws(() => new URL(), TypeError);
    throws(() => URL("http://a"), TypeError);
    ok(URL.canParse("/x", "http://a"));
    equal(URL.parse("/x", "http://a").href, "http://a/x");
  },
  "parts can be set": () => {
    const url = new URL("http://a/");
    url.protocol = "https";
    url.username = "me";
    url.password = "p@ss";
    url.host = "b:81";
    url.pathname = "x y";
    url.search = "q=ä";
    url.hash = "#h";
    equal(url.href, "https://me:p%40ss@b:81/x%20y?q=%C3%A4#h");
    url.hostname = "c";
    url.port = "";
    url.search = "";
    url.hash = "";
    equal(url.href, "https://me:p%40ss@c/x%20y");
    url.href = "http://new/";
    equal(url.host, "new");
    throws(() => {
      url.href = "nonsense";
    }, TypeError);
    equal(url.href, "http://new/");
  },
  "a refused part changes nothing": () => {
    const url = new URL("http://a/b");
    url.port = "99999";
    url.protocol = "mailto";
    url.host = "";
    url.hostname = "a b";
    equal(url.href, "http://a/b");
  },
  "searchParams and search follow each other": () => {
    const url = new URL("http://a/?x=1");
    const params = url.searchParams;
    equal(params, url.searchParams);
    params.append("y", "a b");
    equal(url.href, "http://a/?x=1&y=a+b");
    url.search = "?z=3";
    equal(params.get("z"), "3");
    equal(params.get("x"), null);
    params.delete("z");
    equal(url.href, "http://a/");
    url.href = "http://b/?q=5";
    equal(params.get("q"), "5");
  },
  "a very long URL": () => {
    const url = new URL(`http://a/${"x".repeat(1_000_000)}?${"y".repeat(1_000_000)}`);
    equal(url.pathname.length, 1_000_001);
    equal(url.search.length, 1_000_001);
    ok(throws(() => new URL("z".repeat(10_000_000)), TypeError).message.length < 1000);
  },
  "lone surrogates are replaced": () => {
    equal(new URL("http://a/?\ud800").search, "?%EF%BF%BD");
    equal(new URLSearchParams("\ud800").toString(), "%EF%BF%BD=");
  },
  "URLSearchParams from everything": () => {
    equal(new URLSearchParams("?a=1&b=2").toString(), "a=1&b=2");
    equal(new URLSearchParams("a&&b=&=c&a=2").toString(), "a=&b=&=c&a=2");
    equal(new URLSearchParams([["a", "1"], ["b", "2"]]).toString(), "a=1&b=2");
    equal(new URLSearchParams({ a: 1, b: "ä" }).toString(), "a=1&b=%C3%A4");
    equal(new URLSearchParams(new Map([["a", "1"]])).get("a"), "1");
    equal(new URLSearchParams(new URLSearchParams("a=1")).get("a"), "1");
    equal(new URLSearchParams().toString(), "");
    equal(new URLSearchParams(null).toString(), "null=");
    throws(() => new URLSearchParams([["a"]]), TypeError);
    throws(() => new URLSearchParams([5]), TypeError);
  },
  "URLSearchParams decode and encode": () => {
    equal(new URLSearchParams("a=b+c%20d%2B").get("a"), "b c d+");
    equal(new URLSearchParams("a=%zz%4").get("a"), "%zz%4");
    equal(new URLSearchParams("a=%ff%C3%A4").get("a"), "\uFFFDä");
    equal(new URLSearchParams("a=%EF%BB%BFx").get("a"), "\uFEFFx");
    equal(new URLSearchParams({ a: " !'()~*-._\0é" }).toString(), "a=+%21%27%28%29%7E*-._%00%C3%A9");
    equal(new URLSearchParams("ä=ö").get("ä"), "ö");
  },
  "URLSearchParams methods": () => {
    const params = new URLSearchParams("a=1&b=2&a=3&c=4");
    deepEqual(params.getAll("a"), ["1", "3"]);
    equal(params.size, 4);
    ok(params.has("a", "3"));
    ok(!params.has("a", "4"));
    params.set("a", "9");
    equal(params.toString(), "a=9&b=2&c=4");
    params.append("a", "8");
    params.delete("a", "9");
    equal(params.toString(), "b=2&c=4&a=8");
    params.sort();
    deepEqual([...params], [["a", "8"], ["b", "2"], ["c", "4"]]);
    deepEqual([...params.keys()], ["a", "b", "c"]);
    deepEqual([...params.values()], ["8", "2", "4"]);
    equal(params.get("none"), null);
    equal(String(params[Symbol.iterator]().toString()), "[object URLSearchParams Iterator]");
    throws(() => params.append("a"), TypeError);
  },
};
