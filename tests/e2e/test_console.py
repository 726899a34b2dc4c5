"""The output of console.log, read through the control API as the developer of a worker reads it."""

from __future__ import annotations

import json

import pytest

from tests.running import Atoll

VALUES = [
    ('"text", 1, true, null, undefined', "text 1 true null undefined"),
    ("-0, 10n, NaN, Symbol('s')", "-0 10n NaN Symbol(s)"),
    ("['text', \"it's\"]", "[ 'text', \"it's\" ]"),
    ("{ a: { b: { c: { d: 1 } } } }", "{ a: { b: { c: [Object] } } }"),
    ("[[[[]]]], [[[[1]]]]", "[ [ [ [] ] ] ] [ [ [ [Array] ] ] ]"),
    ("new (class Point { x = 1; get y() { return 2; } })()", "Point { x: 1 }"),
    ("{ get a() { return 1; }, set b(x) {} }", "{ a: [Getter], b: [Setter] }"),
    ("{ [Symbol('k')]: 1, 'a-b': 2 }", "{ 'a-b': 2, Symbol(k): 1 }"),
    (
        "(() => { const a = { n: 1 }; a.self = a; return a; })()",
        "<ref *1> { n: 1, self: [Circular *1] }",
    ),
    ("new Map([['a', { b: 1 }]]), new Set([1, 'x'])", "Map(1) { 'a' => { b: 1 } } Set(2) { 1, 'x' }"),
    ("new Map([[1, 2]]).entries()", "[Map Entries] { [ 1, 2 ] }"),
    (
        "new Uint8Array([1, 2]), new ArrayBuffer(2)",
        "Uint8Array(2) [ 1, 2 ] ArrayBuffer { [Uint8Contents]: <00 00>, [byteLength]: 2 }",
    ),
    ("[1, , 3]", "[ 1, <1 empty item>, 3 ]"),
    ("[1, 2, 3, 4, 5, 6, 7]", "[\n  1, 2, 3, 4,\n  5, 6, 7\n]"),
    (
        "function named() {}, () => {}, class A extends Map {}",
        "[Function: named] [Function (anonymous)] [class A extends Map]",
    ),
    ("Object.create(null), new (class L extends Array {})(2)", "[Object: null prototype] {} L(2) [ <2 empty items> ]"),
    ("new Date(0), /x/gi, new Number(5), new String('s')", "1970-01-01T00:00:00.000Z /x/gi [Number: 5] [String: 's']"),
    ("Promise.resolve(4), new Promise(() => {})", "Promise { 4 } Promise { <pending> }"),
    ("new Proxy({ a: 1 }, { get() { throw 1; }, ownKeys() { throw 2; } })", "{ a: 1 }"),
    ("new Headers({ a: 'b' })", "Headers { a: 'b' }"),
    ("{ [Symbol.for('nodejs.util.inspect.custom')]: () => 'mine' }", "mine"),
    (
        "'%s is %d years and %i months, %f', 'Bob', 42, 3.9, '1.5', { a: 1 }",
        "Bob is 42 years and 3 months, 1.5 { a: 1 }",
    ),
    ("'%j %o %O', { a: [1] }, { b: 2 }, { c: 3 }", '{"a":[1]} { b: 2 } { c: 3 }'),
    ("'%cred%c %% %x %s', 'color: red', ''", "red % %x %s"),
    ("'%s', new (class A { toString() { return 'A!'; } })()", "A!"),
    ("'%s %s', { a: { b: 1 } }, Symbol('q')", "{ a: [Object] } Symbol(q)"),
    ("'100%', 'sure'", "100% sure"),
]


def lines(atoll: Atoll, name: str) -> list[tuple[str, str]]:
    return [(line["level"], line["message"]) for line in atoll.logs(name)[0]["logs"]]


def test_values_are_shown_as_node_shows_them(atoll: Atoll) -> None:
    calls = "\n".join(f"console.log({source});" for source, _ in VALUES)
    atoll.deploy("console-values", f"export default {{ fetch() {{ {calls} return new Response(); }} }};")
    atoll.get("console-values")
    shown = [message for _, message in lines(atoll, "console-values")]
    assert shown == [expected for _, expected in VALUES]


def test_an_error_is_shown_with_its_stack_cause_and_properties(atoll: Atoll) -> None:
    script = """
        class Broken extends Error { name = "Broken"; code = "E_X"; }
        export default { fetch() {
          console.error(new Broken("outer", { cause: new TypeError("inner") }));
          console.error({ nested: new AggregateError([new Error("one")], "many") });
          return new Response();
        } };"""
    atoll.deploy("console-errors", script)
    atoll.get("console-errors")
    (_, first), (_, second) = lines(atoll, "console-errors")
    assert first.startswith(("Broken: outer\n    at ", "Error: outer\n    at "))
    assert "code: 'E_X'" in first and "[cause]: TypeError: inner\n" in first
    assert "AggregateError: many" in second and "[errors]: [" in second


def test_every_method_has_its_level_and_its_form(atoll: Atoll) -> None:
    script = """
        export default { fetch() {
          console.debug("d"); console.info("i"); console.warn("w"); console.error("e"); console.log();
          console.assert(true, "never"); console.assert(false, "%s!", "no"); console.assert(false);
          console.group("outer"); console.log("two\\nlines"); console.groupEnd(); console.log("back");
          console.count(); console.count(); console.countReset(); console.count("x");
          console.table([{ a: 1, b: "x" }, { a: 2 }]);
          console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });
          return new Response();
        } };"""
    atoll.deploy("console-methods", script)
    atoll.get("console-methods")
    shown = lines(atoll, "console-methods")
    assert shown[:4] == [("debug", "d"), ("info", "i"), ("warn", "w"), ("error", "e")]
    assert shown[4:6] == [("error", "Assertion failed: no!"), ("error", "Assertion failed")]
    assert shown[6:9] == [("log", "outer"), ("log", "  two\n  lines"), ("log", "back")]
    assert [message for _, message in shown[9:12]] == ["default: 1", "default: 2", "x: 1"]
    assert shown[12][1].splitlines()[3] == "│ 0       │ 1 │ 'x' │"
    assert shown[13][1] == "{ a: [Object] }"


HOSTILE = {
    "a getter that throws": "{ get x() { throw new Error('never called'); } }",
    "a stack that throws": "Object.defineProperty(new Error('m'), 'stack', { get() { throw 1; } })",
    "a name that throws": "Object.defineProperty(new Error('m'), 'name', { get() { throw 1; } })",
    "a custom inspection that throws": "{ [Symbol.for('nodejs.util.inspect.custom')]() { throw 1; } }",
    "a toString that throws": "'%s %d', { toString() { throw 1; } }, { valueOf() { throw 1; } }",
    "a proxy of traps": "new Proxy({}, new Proxy({}, { get() { throw 1; } }))",
    "a revoked proxy": "(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy; })()",
    "a deep one": "(() => { let a = {}; for (let i = 0; i < 1e5; i++) a = { a }; return a; })()",
    "a long one": "Array.from({ length: 1e5 }, (_, i) => ({ i, text: 'x'.repeat(100) }))",
    "toJSON that throws": "'%j', { toJSON() { throw 1; } }",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arguments_give_a_line_and_nothing_else(atoll: Atoll, name: str) -> None:
    worker = f"console-hostile-{list(HOSTILE).index(name)}"
    script = f"export default {{ fetch() {{ console.log({HOSTILE[name]}); return new Response('fine'); }} }};"
    atoll.deploy(worker, script, limits={"cpu_ms": 3000})
    assert atoll.get(worker).text == "fine"
    assert len(lines(atoll, worker)) == 1


def test_a_worker_that_rewrites_stack_traces_affects_only_itself(atoll: Atoll) -> None:
    script = """
        Error.prepareStackTrace = () => { throw new Error("gotcha"); };
        export default { fetch(request) {
          console.trace("here"); console.error(new Error("shown"));
          Error.prepareStackTrace = () => ({ not: "text" });
          console.trace("again"); console.error(new Error("object")); new DOMException("x");
          if (request.url.endsWith("/throw")) throw new RangeError("told");
          return new Response("fine");
        } };"""
    atoll.deploy("console-stacks", script)
    assert atoll.get("console-stacks").text == "fine"
    assert len(lines(atoll, "console-stacks")) == 4
    assert atoll.get("console-stacks", "/throw").status == 500
    assert "told" in atoll.logs("console-stacks")[0]["exception"]["message"]


def test_polluted_built_ins_affect_only_their_worker(atoll: Atoll) -> None:
    pollution = """
        for (const Class of [Array, Object, Map, Set, Promise, String, Function, RegExp, Uint8Array]) {
          for (const name of Object.getOwnPropertyNames(Class.prototype)) {
            if (name === "constructor" || name === "then") continue;
            try { Object.defineProperty(Class.prototype, name, { value: () => { throw new Error("polluted"); } }); } catch {}
          }
        }
        Object.prototype.status = 999; Object.prototype.get = () => { throw new Error("inherited"); };
        """
    script = f"export default {{ fetch() {{ {pollution} return new Response('x', {{ status: 200 }}); }} }};"
    atoll.deploy("polluter", script)
    atoll.deploy("neighbour", 'export default { fetch() { console.log({ a: 1 }); return new Response("clean"); } };')
    for _ in range(3):
        assert atoll.get("polluter").status in (200, 500)
        assert atoll.get("neighbour").text == "clean"
    assert json.dumps(atoll.logs("polluter")[0])
    assert lines(atoll, "neighbour") == [("log", "{ a: 1 }")]


def test_an_unhandled_rejection_is_logged_unless_a_listener_takes_it(atoll: Atoll) -> None:
    script = """
        addEventListener("unhandledrejection", (event) => { if (event.reason === "taken") event.preventDefault(); });
        export default { fetch() {
          Promise.reject("taken"); Promise.reject(new Error("left"));
          return new Response();
        } };"""
    atoll.deploy("console-rejections", script)
    atoll.get("console-rejections")
    (level, message), *rest = lines(atoll, "console-rejections")
    assert level == "error" and message.startswith("Uncaught (in promise) Error: left") and not rest
