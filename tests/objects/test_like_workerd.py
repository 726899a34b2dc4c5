"""What the tests of workerd expect of objects and D1, besides what SPEC2 says: each was found by reading them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects.hibernating import FIELDS, SOURCE
from tests.running import Atoll

DEADLOCK = (
    "A critical section within this Durable Object awaited a Promise that apparently will never complete. This could "
    "happen in particular if a critical section awaits a task that was initiated outside of the critical section. "
    "Since a critical section blocks all other tasks from completing, this leads to deadlock."
)


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    source = SOURCE.replace(
        "    const { pathname, searchParams } = new URL(request.url);\n    const webSocket",
        "    const { pathname, searchParams } = new URL(request.url);\n"
        "    if (pathname === '/abort') this.ctx.abort('gone');\n"
        "    if (pathname === '/throw') throw new RangeError('mine');\n"
        "    if (pathname === '/ok') return new Response('ok');\n"
        "    const webSocket",
    )
    bindings = [*FIELDS["bindings"], {"type": "d1", "name": "DB", "database": "like-workerd"}]
    atoll.deploy("like-workerd", source, **{**FIELDS, "bindings": bindings})
    return atoll


def run(node: Atoll, code: str, path: str = "/run") -> Any:
    answer = node.post("like-workerd", path, code)
    assert answer.status == 200, answer.text
    return answer.json


SAID = "const said = async (promise) => { try { return await promise; } catch (e) { return e.message; } };"


def test_a_stub_whose_object_was_reset_stays_broken(node: Atoll) -> None:
    code = f"""
      {SAID}
      const stub = () => env.ROOM.getByName("breaks");
      const byMethod = stub(), byFetch = stub();
      return [
        await said(byMethod.run("ctx.abort('first');")), await said(byMethod.run("return 1;")), await said(byMethod.fetch("http://x/ok")),
        await said(byFetch.fetch("http://x/abort")), await said(byFetch.fetch("http://x/ok")), await said(byFetch.run("return 1;")),
        await said(stub().run("return 1;")),
      ];
    """
    assert run(node, code, "/worker") == ["first", "first", "first", "gone", "gone", "gone", 1]


def test_an_exception_of_a_handler_does_not_break_a_stub(node: Atoll) -> None:
    code = f"""
      {SAID}
      const stub = env.ROOM.getByName("throws");
      const first = [await said(stub.run("throw new Error('x');")), await said(stub.fetch("http://x/throw"))];
      return [...first, await stub.run("return 1;"), await (await stub.fetch("http://x/ok")).text()];
    """
    assert run(node, code, "/worker") == ["x", "mine", 1, "ok"]


def test_double_quotes_make_a_string_where_there_is_no_such_column(node: Atoll) -> None:
    code = """
      const { sql } = ctx.storage;
      sql.exec('CREATE TABLE quoted (i INTEGER, s TEXT); INSERT INTO quoted VALUES (1, "abc"), (2, "def")');
      return [sql.exec('SELECT "foo" AS col').one(), sql.exec('SELECT i FROM quoted WHERE s = "abc"').toArray()];
    """
    assert run(node, code) == [{"col": "foo"}, [{"i": 1}]]


def test_every_bookmark_is_later_than_the_one_before(node: Atoll) -> None:
    code = """
      const all = [];
      for (let i = 0; i < 20; i++) { all.push(await ctx.storage.getCurrentBookmark()); await ctx.storage.waitForBookmark(all[i]); }
      return all;
    """
    found = run(node, code)
    assert found == sorted(set(found))


def test_a_section_that_can_never_end_says_why(node: Atoll) -> None:
    """It takes the 30 s that a section may last."""
    code = f"""
      {SAID}
      return said(env.ROOM.getByName("stuck").run("await ctx.blockConcurrencyWhile(() => new Promise(() => {{}}));"));
    """
    assert run(node, code, "/worker") == DEADLOCK


def test_meta_of_d1_counts_what_statements_of_the_schema_do(node: Atoll) -> None:
    code = """
      const { DB } = env;
      const made = await DB.batch([
        DB.prepare("CREATE TABLE abc (a INT, b INT, c INT)"), DB.prepare("CREATE TABLE cde (c TEXT, d TEXT, e TEXT)"),
        DB.prepare("INSERT INTO abc VALUES (1, 2, 3), (4, 5, 6)"), DB.prepare('INSERT INTO cde VALUES ("A", "B", "C"), ("D", "E", "F"), ("G", "H", "I")'),
      ]);
      const read = [await DB.prepare("SELECT * FROM abc, cde").all(), await DB.prepare("SELECT * FROM cde WHERE c IN ('A', 'X', 'Y')").all()];
      const dropped = await DB.batch([DB.prepare("DROP TABLE abc"), DB.prepare("DROP TABLE cde"), DB.prepare("DROP TABLE IF EXISTS none")]);
      const shown = ({ meta }) => [meta.changed_db, meta.changes, meta.last_row_id, meta.rows_read, meta.rows_written];
      return [...made, ...read].map(shown).concat(dropped.map(({ meta }) => [meta.changed_db, meta.changes, meta.rows_written]));
    """
    assert run(node, code, "/worker") == [
        [True, 0, 0, 1, 2], [True, 0, 0, 1, 2], [True, 2, 2, 0, 2], [True, 3, 3, 0, 3],
        [False, 0, 3, 8, 0], [False, 0, 3, 3, 0],
        [True, 0, 0], [True, 0, 0], [False, 0, 0],
    ]  # fmt: skip
