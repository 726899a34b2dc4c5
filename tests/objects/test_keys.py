"""storage.get(), put(), delete(), list() and storage.kv."""

from __future__ import annotations

import pytest

from tests.objects.raw_engine import RawEngine

KEYS = "?keys"  # the class was made with new_classes


def test_values_come_back_as_they_were(shared_engine: RawEngine, slot: int) -> None:
    code = """
        const value = { text: "é", list: [1, 2n, new Date(5)], bytes: new Uint8Array([3]) };
        value.map = new Map([[1, new Set([2])]]);
        value.self = value;
        await storage.put("a", value);
        const back = await storage.get("a");
        return [back.text, back.list[1] === 2n, back.list[2].getTime(), back.map.get(1).has(2), back.bytes[0],
                back.self === back,
                storage.kv.get("a").text, await storage.get("none"), storage.kv.get("none")];
    """
    assert shared_engine.value(slot, code) == ["é", True, 5, True, 3, True, "é", None, None]


def test_many_keys(shared_engine: RawEngine, slot: int) -> None:
    code = """
        await storage.put({ b: 2, a: 1, skipped: undefined, c: 3 });
        return [await storage.get(["c", "a", "x"]), await storage.delete(["a", "x"]),
                await storage.delete("b"), await storage.delete("b"), await storage.list()];
    """
    assert shared_engine.value(slot, code) == [{"map": [["a", 1], ["c", 3]]}, 1, True, False, {"map": [["c", 3]]}]


def test_lists(shared_engine: RawEngine, slot: int) -> None:
    shared_engine.value(
        slot, 'for (const key of ["a", "ab", "b", "c", "\\uffff", "😀", ""]) await storage.put(key, key.length)'
    )

    def listed(options: str) -> list[str]:
        found = shared_engine.value(slot, f"return [...(await storage.list({options})).keys()]")
        assert found == shared_engine.value(slot, f"return [...storage.kv.list({options})].map(([key]) => key)")
        return found  # type: ignore[no-any-return]

    assert listed("") == ["", "a", "ab", "b", "c", "\uffff", "😀"], "in the order of UTF-8 bytes"
    assert listed('{ start: "ab", end: "c" }') == ["ab", "b"]
    assert listed('{ startAfter: "ab", limit: 2 }') == ["b", "c"]
    assert listed('{ start: "ab", reverse: true, end: "c" }') == ["b", "ab"]
    assert listed('{ prefix: "a" }') == ["a", "ab"]
    assert listed('{ prefix: "a", start: "aa" }') == ["ab"]
    assert listed('{ prefix: "\\uffff" }') == ["\uffff"]
    assert listed('{ start: "b", end: "a" }') == []


def test_one_list_at_a_time(shared_engine: RawEngine, slot: int) -> None:
    code = 'storage.kv.put("a", 1); const one = storage.kv.list(); storage.kv.list(); one.next()'
    assert "kv.list() iterator was invalidated" in shared_engine.error(slot, code)


ERRORS = {
    'storage.put("a")': "TypeError: put() may only be called with a single key-value pair",
    'storage.put("a", undefined)': "TypeError: put() called with undefined value.",
    'storage.list({ start: "a", startAfter: "b" })': "list() cannot be called with both start and startAfter",
    "storage.list({ limit: 0 })": "TypeError: List limit must be positive.",
    'await storage.put("a", () => 1)': "DataCloneError",
    'await storage.put("a", new Response(""))': "DataCloneError",
    'await storage.put("a", "x".repeat(2_100_000))': "Error: string or blob too big: SQLITE_TOOBIG",
    "await storage.transaction(async (txn) => { txn.rollback(); await txn.put('a', 1) })": "Cannot put() on rolled",
    "await storage.transaction(async () => { await storage.deleteAll() })": "Cannot call deleteAll() within a",
}


@pytest.mark.parametrize("code", ERRORS)
def test_refused(shared_engine: RawEngine, slot: int, code: str) -> None:
    assert ERRORS[code] in shared_engine.error(slot, code)


LEGACY = {
    "storage.sql": "SQL is not enabled for this Durable Object class. To enable it, change `new_classes`",
    "storage.kv": "The storage.kv (synchronous KV) API is only available for SQLite-backed Durable Objects, but",
    "storage.transactionSync(() => 1)": "Durable Object is not backed by SQL.",
    'storage.get("é".repeat(1025))': "RangeError: Keys cannot be larger than 2048 bytes.",
    'storage.get(["a".repeat(2049)])': "is larger than the limit of 2048 bytes.",
    'storage.put("a", "x".repeat(140_000))': "Values cannot be larger than 131072 bytes. A value of size 140",
    'storage.put({ b: "x".repeat(140_000) })': 'RangeError: Value for key "b" is above the limit of 131072 bytes.',
    'storage.get(Array(129).fill("a"))': "RangeError: Maximum number of keys is 128.",
    "storage.put(Object.fromEntries(Array.from({ length: 129 }, (_, i) => [i, i])))": "Maximum number of pairs is 128.",
}


@pytest.mark.parametrize("code", LEGACY)
def test_limits_of_classes_without_sql(shared_engine: RawEngine, slot: int, code: str) -> None:
    assert LEGACY[code] in shared_engine.error(slot, code, KEYS)
    assert shared_engine.value(slot, 'await storage.put("k", 1); return storage.get("k")', KEYS) == 1
