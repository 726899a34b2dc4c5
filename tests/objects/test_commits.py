"""COMMIT frames: their pages alone rebuild exactly the database that the object sees."""

from __future__ import annotations

import json
import random
from pathlib import Path

from atoll.wire.generated import COMMIT_PAGES, Frame
from tests.objects.raw_engine import Copy, RawEngine

FILL = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
          INSERT INTO t SELECT i, hex(randomblob(100)) FROM n"""


def rows(copy: Copy, path: Path, query: str = "SELECT * FROM t ORDER BY 1") -> list[tuple[object, ...]]:
    return copy.opened(path).execute(query).fetchall()


def test_a_turn_is_one_commit_before_its_response(shared_engine: RawEngine, tmp_path: Path) -> None:
    copy = shared_engine.open(1)
    answer = shared_engine.run(
        1, 'sql.exec("CREATE TABLE t (a)"); sql.exec("INSERT INTO t VALUES (1)"); await 0; storage.put("k", 1)'
    )
    assert answer.frames == [Frame.COMMIT, Frame.RESPONSE]
    assert rows(copy, tmp_path / "db") == [(1,)]
    assert shared_engine.run(1, 'return sql.exec("SELECT a FROM t").one().a').frames == [Frame.RESPONSE], "a read"
    shared_engine.value(1, 'sql.exec("UPDATE t SET a = 2")')
    assert rows(copy, tmp_path / "db") == [(2,)]
    assert copy.counts[-1] == 1, "a small change is one page"


def test_databases_of_one_worker_are_apart(shared_engine: RawEngine, tmp_path: Path) -> None:
    copies = [shared_engine.open(slot) for slot in (11, 12)]
    for slot in (11, 12):
        shared_engine.value(slot, f'sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES ({slot})")')
    assert [rows(copy, tmp_path / "db") for copy in copies] == [[(11,)], [(12,)]]
    shared_engine.close(11)
    assert "no longer accessible" in shared_engine.error(11, 'sql.exec("SELECT 1")')
    assert shared_engine.value(12, 'return sql.exec("SELECT a FROM t").one().a') == 12


def test_transactions_larger_than_the_cache(shared_engine: RawEngine, tmp_path: Path) -> None:
    copy = shared_engine.open(21)
    shared_engine.value(21, f"sql.exec(`CREATE TABLE t (a INTEGER PRIMARY KEY, b); {FILL.format(count=20_000)}`)")
    assert copy.sequence == 1 and copy.counts[0] > 1000, "more pages than the cache has, in one commit"
    shared_engine.value(21, 'sql.exec("UPDATE t SET b = b || a")')
    found = rows(copy, tmp_path / "db", "SELECT count(*), sum(length(b)) FROM t")
    assert found == [
        tuple(shared_engine.value(21, 'return sql.exec("SELECT count(*), sum(length(b)) FROM t").raw().next().value'))
    ]
    # Undone after the cache has overflowed: nothing of it may be in a commit.
    answer = shared_engine.run(
        21, 'try { storage.transactionSync(() => { sql.exec("UPDATE t SET b = 1"); throw 1 }) } catch {}'
    )
    assert answer.error == "" and copy.sequence <= 3
    assert rows(copy, tmp_path / "db", "SELECT count(*), sum(length(b)) FROM t") == found


def test_a_commit_has_a_largest_size(engine: RawEngine, tmp_path: Path) -> None:
    copy = engine.open(1)
    engine.value(1, 'sql.exec("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)")')
    answer = engine.run(1, f"sql.exec(`{FILL.format(count=200_000)}`)")
    assert answer.error.startswith(
        ("Error: database or disk is full: SQLITE_FULL", "Error: out of memory: SQLITE_NOMEM")
    )
    assert max(copy.counts) < COMMIT_PAGES and rows(copy, tmp_path / "db") == [(1, 2)]
    assert Frame.RESET in answer.frames[: answer.frames.index(Frame.RESPONSE)], "the response is not to be trusted"
    assert "no longer accessible" in engine.error(1, 'sql.exec("SELECT 1")')
    engine.open(2)
    assert engine.value(2, 'return sql.exec("SELECT 5 AS a").one().a') == 5, "other objects are unharmed"


def test_a_violated_constraint_at_the_end_of_a_turn_resets(shared_engine: RawEngine, tmp_path: Path) -> None:
    copy = shared_engine.open(31)
    schema = "CREATE TABLE t (a PRIMARY KEY); CREATE TABLE u (b REFERENCES t DEFERRABLE INITIALLY DEFERRED)"
    shared_engine.value(31, f'sql.exec("{schema}")')
    shared_engine.run(31, 'sql.exec("INSERT INTO t VALUES (1)"); sql.exec("INSERT INTO u VALUES (9)")')
    assert shared_engine.resets[31]["message"].endswith(
        "constraints were violated: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT"
    )
    assert rows(copy, tmp_path / "db") == []


def test_a_file_is_read_and_commits_are_dropped_once_they_are_in_it(engine: RawEngine, tmp_path: Path) -> None:
    path = tmp_path / "object"
    copy = engine.open(1)
    engine.value(1, f"sql.exec(`CREATE TABLE t (a INTEGER PRIMARY KEY, b); {FILL.format(count=5_000)}`)")
    copy.write(path)
    engine.close(1)
    second = engine.open(2, path)
    assert engine.value(2, 'return sql.exec("SELECT count(*) n FROM t").one().n') == 5_000
    for turn in range(5):
        engine.value(2, f'sql.exec("UPDATE t SET b = {turn} WHERE a % 5 = {turn}")')
        if turn == 3:
            second.write(path)  # as Python merges
            engine.stored(2, second.sequence, second.sequence)
    for value in (engine.value(2, 'return [...sql.exec("SELECT b, count(*) FROM t GROUP BY b ORDER BY b").raw()]'),):
        assert [tuple(row) for row in value] == rows(
            second, tmp_path / "copy", "SELECT b, count(*) FROM t GROUP BY b ORDER BY b"
        )
    second.write(path)
    engine.stored(2, second.sequence, second.sequence)
    assert engine.value(2, 'return sql.exec("PRAGMA quick_check").one().quick_check') == "ok"


def test_a_file_that_is_no_database(engine: RawEngine, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(random.Random(1).randbytes(8192))
    engine.open(1, path)
    assert "no longer accessible" in engine.error(1, 'sql.exec("SELECT 1")')
    assert "file is not a database" in engine.resets[1]["message"]


def test_everything_can_be_deleted(shared_engine: RawEngine, tmp_path: Path) -> None:
    copy = shared_engine.open(41, alarm_ms=5)
    shared_engine.value(41, f"sql.exec(`CREATE TABLE t (a, b); {FILL.format(count=1000)}`)")
    shared_engine.value(41, 'await storage.put("a", 1); await storage.deleteAll()')
    assert (copy.pages, copy.contents) == (0, {})
    assert shared_engine.value(
        41, 'return [sql.exec("SELECT * FROM sqlite_schema").toArray(), await storage.get("a")]'
    ) == [[], None]
    shared_engine.value(41, 'await storage.deleteAll(); sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (7)")')
    assert rows(copy, tmp_path / "db") == [(7,)]


def test_alarms_are_part_of_the_transaction(shared_engine: RawEngine) -> None:
    copy = shared_engine.open(51, alarm_ms=77)
    assert shared_engine.value(51, "return storage.getAlarm()") == 77
    shared_engine.value(51, "await storage.setAlarm(4102444800000)")
    shared_engine.value(51, "await storage.setAlarm(4102444800000)")
    code = """
        try { storage.transactionSync(() => { storage.setAlarm(4102444900000); throw 1 }) } catch {}
        return storage.getAlarm();
    """
    assert shared_engine.value(51, code) == 4102444800000
    shared_engine.value(51, "await storage.deleteAlarm()")
    assert copy.alarms == [4102444800000, 4102444800000, -1]
    assert shared_engine.value(51, "return storage.getAlarm()") is None
    taken = shared_engine.open(52, alarm_ms=77)
    shared_engine.value(52, "await storage.deleteAlarm()")
    assert taken.alarms == [-1]
    past = shared_engine.value(51, "await storage.setAlarm(1); return [await storage.getAlarm(), Date.now()]")
    assert past[0] == past[1]
    assert "alarm time <= 0" in shared_engine.error(51, "storage.setAlarm(0)")


def test_sync_waits_until_python_says_so(shared_engine: RawEngine) -> None:
    copy = shared_engine.open(61)
    assert shared_engine.value(61, "return storage.sync()") is None, "nothing to wait for"
    shared_engine.value(61, 'sql.exec("CREATE TABLE t (a)")')
    shared_engine.stored(61, 1)
    empty = 'sql.exec("DELETE FROM t WHERE a = 1"); await storage.sync(); return "nothing"'
    assert shared_engine.value(61, empty) == "nothing", "a transaction without a change"
    call = shared_engine.send(61, 'storage.put("a", 1); await storage.sync(); return "durable"')
    while copy.sequence == 1:
        kind, _, _, number, payload = shared_engine.read()
        assert (kind, number) == (Frame.COMMIT, 61), "no response before the write is durable"
        copy.apply(payload)
    shared_engine.stored(61, 2)
    assert shared_engine.finish(call).result == "durable"


def test_an_open_transaction_holds_the_commit_back(shared_engine: RawEngine, tmp_path: Path) -> None:
    copy = shared_engine.open(71)
    shared_engine.value(71, 'sql.exec("CREATE TABLE t (a)")')
    code = """
        return storage.transaction(async (txn) => {
          sql.exec("INSERT INTO t VALUES (1)");
          await new Promise((resolve) => setTimeout(resolve, 5));
          await txn.put("a", 1);
          return "done";
        });
    """
    assert shared_engine.value(71, code) == "done"
    assert copy.sequence == 2 and rows(copy, tmp_path / "db") == [(1,)]
    failing = code.replace('return "done"', "txn.rollback()").replace("VALUES (1)", "VALUES (2)")
    assert shared_engine.value(71, failing) is None
    assert rows(copy, tmp_path / "db") == [(1,)]
    throwing = code.replace('return "done"', "throw new Error('no')")
    assert shared_engine.error(71, throwing) == "Error: no"
    assert rows(copy, tmp_path / "db") == [(1,)]
    late = "let kept; await storage.transaction(async (txn) => { kept = txn }); await kept.put('a', 1)"
    assert "Cannot call put() on transaction that has already committed" in shared_engine.error(71, late)


def test_random_transactions_rebuild_the_database(engine: RawEngine, tmp_path: Path) -> None:
    """A model check: random writes, roll-backs, merges and deletes; the copy is always what the object sees."""
    choose = random.Random(20)
    path = tmp_path / "object"
    path.write_bytes(b"")
    copy = engine.open(1, path)
    engine.value(1, 'sql.exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t (b)")')
    read = 'return [...sql.exec("SELECT a, b FROM t ORDER BY a").raw()]'
    for turn in range(60):
        steps = []
        for _ in range(choose.randint(1, 4)):
            low, count = choose.randint(1, 3000), choose.randint(1, 600)
            write = choose.choice(
                (
                    f"WITH RECURSIVE n(i) AS (SELECT {low} UNION ALL SELECT i + 1 FROM n WHERE i < {low + count}) "
                    f"INSERT OR REPLACE INTO t SELECT i, i % 7 || hex(zeroblob(i % 90)) FROM n",
                    f"DELETE FROM t WHERE a BETWEEN {low} AND {low + count}",
                    f"UPDATE t SET b = b || {turn} WHERE a BETWEEN {low} AND {low + count}",
                )
            )
            step = f"sql.exec({json.dumps(write)});"
            if choose.random() < 0.3:
                step = f"try {{ storage.transactionSync(() => {{ {step} throw 1 }}) }} catch {{}}"
            steps.append(step)
        if turn == 40:
            steps.append('await storage.deleteAll(); sql.exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b)");')
        engine.value(1, "".join(steps))
        if choose.random() < 0.3:
            copy.write(path)
            engine.stored(1, copy.sequence, copy.sequence)
        if turn % 6 == 0 or turn == 40:
            assert [tuple(row) for row in engine.value(1, read)] == rows(copy, tmp_path / "copy")
