"""The pages of D1 in Chromium: rows of any number, changes as a transaction, SQL, and the way back in time."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote

from tests.dashboard.data_node import EVIL, browser, control, data_node, data_tab, pages
from tests.dashboard.pages import Pages
from tests.running import Atoll

__all__ = ["browser", "data_node", "data_tab", "pages"]


def run(node: Atoll, database: str, sql: str) -> list[list[Any]]:
    found = control(node, "POST", f"/api/d1/{database}/raw", {"sql": sql}).json["result"]
    rows: list[list[Any]] = found[-1]["results"]["rows"]
    return rows


def make(node: Atoll, database: str, sql: str) -> None:
    control(node, "POST", "/api/d1", {"name": database})
    control(node, "POST", f"/api/d1/{database}/query", {"sql": sql})


def open_cell(pages: Pages, row: int, column: int) -> None:
    pages.wait(f"document.querySelectorAll('.grid tbody tr').length > {row}")
    pages.run(f"document.querySelectorAll('.grid tbody tr')[{row}].querySelectorAll('button.cell')[{column}].click()")
    pages.wait("Boolean(document.querySelector('dialog[open] textarea, dialog[open] pre, dialog[open] select'))")


def test_changes_are_shown_as_a_transaction_run_and_taken_back(pages: Pages, data_node: Atoll) -> None:
    make(
        data_node,
        "edits",
        "CREATE TABLE teas (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER DEFAULT 7); INSERT INTO teas VALUES (1, 'it''s green', 9007199254740993), (2, 'black', 2), (3, 'gone', 3)",
    )
    pages.open("/data/d1/edits")
    pages.click("teas", "tbody a")
    open_cell(pages, 0, 1)
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type('it\'s "white"; DROP TABLE teas; --', "dialog[open] textarea")
    pages.click("Change")
    pages.run("[...document.querySelectorAll('.grid tbody tr')][2].querySelector('td.right button').click()")
    pages.click("Add a row")
    pages.run(
        "{ const select = document.querySelectorAll('dialog fieldset select')[1]; select.value = 'text'; select.dispatchEvent(new Event('change', { bubbles: true })); }"
    )
    pages.type("oolong", "dialog[open] fieldset input[type=text]")
    pages.click("Add", "dialog button")
    pages.click("Review 3 changes")
    shown = pages.wait("document.querySelector('dialog[open] pre')?.innerText")
    assert shown == (
        'UPDATE "teas" SET "name" = \'it\'\'s "white"; DROP TABLE teas; --\' WHERE rowid = 1;\n'
        'DELETE FROM "teas" WHERE rowid = 3;\n'
        'INSERT INTO "teas" ("name") VALUES (\'oolong\');'
    )
    assert pages.violations() == []
    assert len(run(data_node, "edits", "SELECT * FROM teas WHERE name = 'it''s green'")) == 1, "nothing ran yet"
    pages.click("Run", "dialog button.primary")
    pages.wait("document.querySelector('.notice')?.innerText.includes('3 statements ran in one transaction.')")
    names = run(data_node, "edits", "SELECT id, name, CAST(stock AS TEXT) FROM teas ORDER BY id")
    assert names == [[1, "it's \"white\"; DROP TABLE teas; --", "9007199254740993"], [2, "black", "2"], [3, "oolong", "7"]] or names == [
        [1, "it's \"white\"; DROP TABLE teas; --", "9007199254740993"], [2, "black", "2"], [4, "oolong", "7"]
    ]  # fmt: skip
    pages.click("Take it back")
    pages.click("Take it back", "dialog button.bad")
    pages.wait("document.querySelector('.notice')?.innerText.includes('It is taken back')")
    assert [each[1] for each in run(data_node, "edits", "SELECT * FROM teas ORDER BY id")] == [
        "it's green",
        "black",
        "gone",
    ]
    assert pages.complaints() == []


def test_a_transaction_that_fails_changes_nothing_and_stays_to_be_mended(pages: Pages, data_node: Atoll) -> None:
    make(
        data_node,
        "strict",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n < 10)) STRICT; INSERT INTO t VALUES (1, 1), (2, 2)",
    )
    pages.open("/data/d1/strict?table=t")
    for row, value in ((0, "5"), (1, "50")):
        open_cell(pages, row, 1)
        pages.run("document.querySelector('dialog textarea').select()")
        pages.type(value, "dialog[open] textarea")
        pages.click("Change")
    pages.click("Review 2 changes")
    pages.click("Run", "dialog button.primary")
    pages.wait("document.querySelector('dialog .notice.bad')?.innerText.includes('CHECK constraint failed')")
    assert run(data_node, "strict", "SELECT n FROM t") == [[1], [2]]
    pages.press("Escape")
    pages.wait("document.body.innerText.includes('Review 2 changes')")


def test_numbers_and_blobs_are_exact_and_bad_ones_are_refused(pages: Pages, data_node: Atoll) -> None:
    make(
        data_node,
        "exact",
        "CREATE TABLE t (v); INSERT INTO t VALUES (9223372036854775807), (0.1 + 0.2), (x'00ff'), ('a' || char(13, 10) || 'b'), (NULL)",
    )
    pages.open("/data/d1/exact?table=t")
    assert "9223372036854775807" in pages.wait("document.querySelector('.grid')?.innerText")
    open_cell(pages, 1, 0)
    assert float(pages.run("document.querySelector('dialog textarea').value")) == 0.1 + 0.2
    pages.press("Escape")
    pages.wait("!document.querySelector('dialog')")
    open_cell(pages, 0, 0)
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type("9223372036854775808", "dialog[open] textarea")
    pages.wait("document.querySelector('dialog .bad-text')?.innerText.includes('64 bits')")
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type("12345678901234567", "dialog[open] textarea")
    pages.click("Change")
    open_cell(pages, 2, 0)
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type("0g", "dialog[open] textarea")
    pages.wait("document.querySelector('dialog .bad-text')?.innerText.includes('in hex')")
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type("00 01 fe", "dialog[open] textarea")
    pages.click("Change")
    open_cell(pages, 3, 0)
    pages.type("!", "dialog[open] textarea")
    pages.click("Change")
    pages.click("Review 3 changes")
    pages.click("Run", "dialog button.primary")
    pages.wait("document.querySelector('.notice')?.innerText.includes('3 statements')")
    assert run(
        data_node,
        "exact",
        "SELECT CASE typeof(v) WHEN 'real' THEN format('%.1f', v) ELSE quote(v) END FROM t WHERE rowid <> 4",
    ) == [
        ["12345678901234567"],
        ["0.3"],
        ["X'0001FE'"],
        ["NULL"],
    ]
    assert run(data_node, "exact", "SELECT hex(v) FROM t WHERE rowid = 4") == [[b"a\r\nb!".hex().upper()]]


def test_ten_thousand_rows_come_in_pages(pages: Pages, data_node: Atoll) -> None:
    began = time.monotonic()
    pages.open("/data/d1/hostile?table=many", ready="document.querySelectorAll('.grid tbody tr').length === 50")
    pages.click("Next page")
    pages.wait("document.querySelector('.grid tbody')?.innerText.startsWith('51')")
    pages.run("history.back()")
    pages.wait("document.querySelector('.grid tbody')?.innerText.startsWith('1')")
    pages.open(
        "/data/d1/hostile?table=many&after=9980", ready="document.querySelectorAll('.grid tbody tr').length === 20"
    )
    assert "This is the last page." in pages.text()
    assert time.monotonic() - began < 8
    pages.open("/data/d1/hostile?table=cheap")
    pages.wait("document.querySelector('#main')?.innerText.includes('tea 39')")
    assert "Rows of this view have no number of their own" in pages.text()
    pages.open("/data/d1/hostile?table=keyed")
    pages.wait("document.querySelector('#main')?.innerText.includes('Rows of this table have no number of their own')")
    assert pages.complaints() == [] or all("400" in each for each in pages.complaints())


def test_hostile_names_and_rows_are_text(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/d1/hostile")
    pages.click("<img", "tbody a")
    pages.wait("document.querySelectorAll('.grid tbody tr').length === 2")
    assert EVIL in pages.run("document.querySelector('h2').innerText")
    assert EVIL in pages.run("document.querySelector('.grid thead').innerText")
    assert EVIL in pages.run("document.querySelector('.grid tbody').innerText")
    assert "9007199254740993" in pages.text()
    open_cell(pages, 0, 0)
    assert pages.run("document.querySelector('dialog textarea').value") == EVIL
    assert pages.run("document.querySelectorAll('#app img').length") == 0
    assert pages.complaints() == []


def test_the_console_reads_explains_and_writes_only_when_it_is_asked_for(pages: Pages, data_node: Atoll) -> None:
    make(data_node, "console", "CREATE TABLE t (v)")
    pages.open("/data/d1/console?tab=sql")
    pages.type("INSERT INTO t VALUES (1), (2)", ".console textarea")
    pages.click("Run")
    pages.wait("document.querySelector('.notice.bad')?.innerText.includes('Only statements that read')")
    assert run(data_node, "console", "SELECT * FROM t") == []
    pages.run("document.querySelector('.console input[type=checkbox]').click()")
    pages.click("Run")
    pages.wait("document.querySelector('.results')?.innerText.includes('2 changed')")
    pages.run("document.querySelector('.console textarea').select()")
    pages.type(f"SELECT v, '{EVIL.replace(chr(39), chr(39) * 2)}' AS evil FROM t; SELECT NULL", ".console textarea")
    pages.click("Run")
    pages.wait("document.querySelectorAll('.results table').length === 2")
    assert EVIL in pages.text() and "NULL" in pages.text() and pages.violations() == []
    pages.run("document.querySelector('.console textarea').select()")
    pages.type("SELECT * FROM t WHERE v = 1", ".console textarea")
    pages.click("Explain")
    pages.wait("document.querySelector('.results')?.innerText.includes('SCAN t')")
    pages.run("document.querySelector('.console textarea').select()")
    pages.type("SELEC", ".console textarea")
    pages.click("Run")
    pages.wait("document.querySelector('.notice.bad')?.innerText.length > 0")
    pages.run("document.querySelector('.console textarea').select()")
    sql = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10000) SELECT n FROM c"
    pages.type(sql, ".console textarea")
    pages.click("Run")
    pages.wait("document.querySelector('.results')?.innerText.includes('10K rows')")
    assert pages.run("document.querySelectorAll('.results tbody tr').length") == 100


def test_a_database_goes_back_to_a_bookmark_and_forth_again(pages: Pages, data_node: Atoll) -> None:
    make(data_node, "travel", "CREATE TABLE t (v); INSERT INTO t VALUES ('kept')")
    then = data_node.control("GET", "/api/d1/travel/time_travel/bookmark").json["bookmark"]
    run(data_node, "travel", "DELETE FROM t")
    pages.open("/data/d1/travel?tab=time")
    pages.type(then, "label.grow input")
    pages.click("Restore")
    pages.type("travel", "dialog[open] input")
    pages.click("Restore", "dialog button.bad")
    pages.wait("document.querySelector('.notice')?.innerText.includes('as it was then')")
    assert run(data_node, "travel", "SELECT v FROM t") == [["kept"]]
    pages.click("Take it back")
    pages.click("Take it back", "dialog button.bad")
    pages.wait("document.querySelector('.notice')?.innerText.includes('It is taken back')")
    assert run(data_node, "travel", "SELECT v FROM t") == []
    pages.run("{ const input = document.querySelector('label.grow input'); input.select(); }")
    pages.type("no-such-bookmark", "label.grow input")
    pages.click("Restore", "form button")
    pages.type("travel", "dialog[open] input")
    pages.click("Restore", "dialog button.bad")
    pages.wait("document.querySelector('dialog .notice.bad')?.innerText.includes('bookmark')")


def test_rows_of_names_with_quotes_are_read_and_changed(pages: Pages, data_node: Atoll) -> None:
    table = "a\"b'c [d] `e`"
    make(
        data_node,
        "quoted",
        f'CREATE TABLE {json.dumps(table).replace(chr(92) + chr(34), chr(34) * 2)} (rowid TEXT, "x""y" TEXT); INSERT INTO "{table.replace(chr(34), chr(34) * 2)}" VALUES (\'r\', \'old\')',
    )
    pages.open(f"/data/d1/quoted?table={quote(table, safe='')}")
    open_cell(pages, 0, 1)
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type("new", "dialog[open] textarea")
    pages.click("Change")
    pages.click("Review 1 change")
    assert "WHERE _rowid_ = 1" in pages.wait("document.querySelector('dialog[open] pre')?.innerText")
    pages.click("Run", "dialog button.primary")
    pages.wait("document.querySelector('.notice')?.innerText.includes('1 statement ran')")
    assert run(data_node, "quoted", f'SELECT "x""y" FROM "{table.replace(chr(34), chr(34) * 2)}"') == [["new"]]
