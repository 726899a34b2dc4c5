// https://fetch.spec.whatwg.org/#headers-class
import { inspect } from "node:util";
import { deepEqual, equal, ok, throws } from "./assert.js";

export const tests = {
  "names are case-insensitive and values are trimmed": () => {
    const headers = new Headers({ "Content-TYPE": "  text/html\t", "X-A": "\r\n b \r\n" });
    equal(headers.get("content-type"), "text/html");
    equal(headers.get("CONTENT-Type"), "text/html");
    equal(headers.get("x-a"), "b");
    equal(headers.get("missing"), null);
    ok(headers.has("X-a"));
  },
  "values of one name are combined in their order": () => {
    const headers = new Headers([["a", "1"], ["A", "2"]]);
    headers.append("a", "");
    equal(headers.get("a"), "1, 2, ");
    headers.set("A", "3");
    equal(headers.get("a"), "3");
    headers.delete("a");
    equal(headers.get("a"), null);
  },
  "set replaces the first value and removes the others": () => {
    const headers = new Headers([["a", "1"], ["b", "2"], ["a", "3"], ["c", "4"]]);
    headers.set("a", "5");
    deepEqual([...headers], [["a", "5"], ["b", "2"], ["c", "4"]]);
  },
  "iteration is sorted, in lower case, with separate cookies": () => {
    const headers = new Headers([["Z", "1"], ["set-cookie", "a=1"], ["B", "2"], ["Set-Cookie", "b=2, x"], ["z", "3"]]);
    deepEqual([...headers], [["b", "2"], ["set-cookie", "a=1"], ["set-cookie", "b=2, x"], ["z", "1, 3"]]);
    deepEqual([...headers.keys()], ["b", "set-cookie", "set-cookie", "z"]);
    deepEqual([...headers.values()], ["2", "a=1", "b=2, x", "1, 3"]);
    deepEqual(headers.getSetCookie(), ["a=1", "b=2, x"]);
    deepEqual(headers.getAll("Set-Cookie"), ["a=1", "b=2, x"]);
    throws(() => headers.getAll("a"), TypeError);
    equal(headers.get("set-cookie"), "a=1, b=2, x");
    equal(inspect(headers), "Headers { b: '2', 'set-cookie': [ 'a=1', 'b=2, x' ], z: '1, 3' }");
    const seen = [];
    headers.forEach((value, name, self) => seen.push(name, value, self === headers));
    equal(seen.length, 12);
    ok(seen[2]);
  },
  "a change during iteration is seen": () => {
    const headers = new Headers({ a: "1", b: "2" });
    const names = [];
    for (const [name] of headers) {
      names.push(name);
      if (name === "a") headers.append("c", "3");
    }
    deepEqual(names, ["a", "b", "c"]);
  },
  "can be made from Headers, a Map, pairs, a record": () => {
    const first = new Headers({ a: "1" });
    equal(new Headers(first).get("a"), "1");
    equal(new Headers(new Map([["a", "1"]])).get("a"), "1");
    equal(new Headers([["a", "1"]]).get("a"), "1");
    equal([...new Headers()].length, 0);
    equal([...new Headers(undefined)].length, 0);
    equal(new Headers({ a: 5, b: null }).get("b"), "null");
  },
  "a wrong init is refused": () => {
    throws(() => new Headers(null), TypeError);
    throws(() => new Headers("a: b"), TypeError);
    throws(() => new Headers(5), TypeError);
    throws(() => new Headers([["a"]]), TypeError);
    throws(() => new Headers([["a", "b", "c"]]), TypeError);
    throws(() => new Headers(["ab"]), TypeError);
    throws(() => new Headers({ [Symbol("s")]: "1" }), TypeError);
  },
  "a header cannot be injected": () => {
    const headers = new Headers();
    for (const value of ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"]) {
      throws(() => headers.set("a", value), TypeError);
      throws(() => headers.append("a", value), TypeError);
      throws(() => new Headers({ a: value }), TypeError);
      throws(() => new Response("", { headers: { a: value } }), TypeError);
    }
    for (const name of ["", "a b", "a:", "a\r\n", "é", "a\0", "(a)", "\u0130", "a\n"]) {
      throws(() => headers.set(name, "x"), TypeError, name);
      throws(() => headers.get(name), TypeError, name);
      throws(() => headers.has(name), TypeError, name);
      throws(() => headers.delete(name), TypeError, name);
    }
    throws(() => headers.set("a", "\u0100"), TypeError);
    headers.set("a", "\xff\x01\x7f");
    equal(headers.get("a"), "\xff\x01\x7f");
    equal([...headers].length, 1);
  },
  "many and long headers do no harm": () => {
    const headers = new Headers();
    for (let i = 0; i < 10_000; i++) headers.append(`x-${i}`, "v");
    headers.set("big", "x".repeat(1_000_000));
    equal([...headers].length, 10_001);
    equal(headers.get("x-9999"), "v");
    throws(() => headers.set("big", "x".repeat(1_000_000) + "\n" + "y"), TypeError);
  },
  "a record given by a proxy is read key by key": () => {
    const log = [];
    const record = new Proxy({ a: "1", b: "2" }, {
      ownKeys: (target) => (log.push("keys"), Reflect.ownKeys(target)),
      getOwnPropertyDescriptor: (target, key) => (log.push(`own ${key}`), Reflect.getOwnPropertyDescriptor(target, key)),
      get: (target, key) => (log.push(`get ${String(key)}`), target[key]),
    });
    new Headers(record);
    deepEqual(log, ["get Symbol(Symbol.iterator)", "keys", "own a", "get a", "own b", "get b"]);
  },
  "too few arguments are refused": () => {
    const headers = new Headers();
    throws(() => headers.append("a"), TypeError);
    throws(() => headers.set("a"), TypeError);
    throws(() => headers.get(), TypeError);
    throws(() => headers.forEach(), TypeError);
    throws(() => Headers.prototype.get.call({}, "a"), TypeError);
  },
};
