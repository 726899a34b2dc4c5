"""Hostile SQL ends at the limits of its worker, and other workers of the engine go on."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from atoll.wire.codec import encode_call
from atoll.wire.generated import ErrorCode, Flag, Frame
from tests.objects.raw_engine import WORKER, RawEngine

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
LONG = "(SELECT hex(zeroblob(2000000)) AS h)"

# What each would do without an end: compute, or take memory.
ATTACKS = {
    "endless rows": ENDLESS + "SELECT count(*) FROM n",
    "rows nobody takes": ENDLESS + "SELECT i FROM n WHERE i < 0",
    "a join of everything": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
        "SELECT count(*) FROM n a, n b, n c WHERE a.i + b.i = c.i"
    ),
    "endless inserts": "CREATE TABLE t (a); " + ENDLESS + "INSERT INTO t SELECT i FROM n",
    "an endless sort": ENDLESS + "SELECT i FROM n ORDER BY i DESC",
    "an endless text": ENDLESS + "SELECT length(group_concat(hex(zeroblob(1000)))) FROM n",
    "distinct rows": ENDLESS + "SELECT count(DISTINCT hex(randomblob(500))) FROM n",
    "many long texts": ENDLESS + f"SELECT count(replace(h, '0', 'ab')) FROM n, {LONG}",
    "a long search": f"SELECT instr(replace(h, '0', 'a'), substr(replace(h, '0', 'a'), 1, 2000000) || 'b') FROM {LONG}",
    "a long replacement": (
        f"SELECT length(replace(replace(h, '0', 'a'), substr(replace(h, '0', 'a'), 1, 1000000) || 'b', '')) FROM {LONG}"
    ),
    "a long trim": f"SELECT length(trim(replace(h, '0', 'a'), replace(h, '0', 'b') || 'a')) FROM {LONG}",
    "many digits": f"SELECT length(unhex(replace(h, '0', 'z'), replace(h, '0', 'x') || 'z')) FROM {LONG}",
    "triggers without end": (
        "PRAGMA recursive_triggers=ON; CREATE TABLE t (a); "
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO t VALUES (new.a + 1); END; INSERT INTO t VALUES (1)"
    ),
    "two long documents merged": (
        "SELECT length(json_patch(a, b)) FROM (SELECT '{' || group_concat(printf('\"a%06d\":1', i)) || '}' AS a, "
        "'{' || group_concat(printf('\"b%06d\":1', i)) || '}' AS b FROM "
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n))"
    ),
    "a deep document": "SELECT json('" + "[" * 40_000 + "')",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_sql_ends(storage_snapshots: Path, name: str) -> None:
    with RawEngine(storage_snapshots, cpu_ms=200) as engine:
        engine.open(1)
        engine.load(WORKER + 1, cpu_ms=2000, source='export default { fetch: () => new Response("fine") };')
        call = engine.send(1, f"sql.exec({ATTACKS[name]!r}).toArray()")
        answer = engine.finish(call)
        if answer.failure is not None:
            assert answer.failure["code"] in (ErrorCode.CPU, ErrorCode.MEMORY), answer
        assert Frame.STUCK not in answer.frames
        if answer.error:
            assert "SQLITE_" in answer.error
        assert engine_answers(engine)


def engine_answers(engine: RawEngine) -> bool:
    """A neighbour in the same process is served."""
    engine.socket.sendall(encode_call(WORKER + 1, 999, 0, b"GET http://test/\nHost: test\r\n", b"", True))
    while True:
        kind, flags, worker, number, payload = engine.read()
        assert kind != Frame.STUCK
        if (worker, number) == (WORKER + 1, 999) and kind == Frame.RESPONSE:
            (length,) = struct.unpack_from("<I", payload, 8)
            return payload[12 + length :] == b"fine" and bool(flags & Flag.DONE)


def test_memory_of_databases_is_bounded(engine: RawEngine) -> None:
    """Many objects of one worker share its memory: one that takes too much gets an error, and is reset."""
    for slot in (1, 2):
        engine.open(slot)
        engine.value(slot, 'sql.exec("CREATE TABLE t (a)")')
    code = 'for (let i = 0; i < 500; i++) sql.exec("INSERT INTO t VALUES (zeroblob(60000))")'
    said = [engine.run(1, code).error for _ in range(3)]  # nothing is merged, so pages stay in memory
    assert any("SQLITE_FULL" in each or "SQLITE_NOMEM" in each for each in said), said
    engine.open(3)
    assert engine.value(3, 'sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1)"); return 1') == 1


def test_cursors_that_are_dropped_are_freed(engine: RawEngine) -> None:
    engine.open(1)
    engine.value(1, 'sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")')
    code = 'for (let i = 0; i < 20_000; i++) sql.exec("SELECT a FROM t").next(); return 1'
    assert engine.value(1, code) == 1
