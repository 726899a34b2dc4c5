"""SQL statements per second inside one call of an object, on an engine alone: no node, no disk.

    python -m bench.object_storage

What a call of an object costs around them is measured elsewhere.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.objects.raw_engine import RawEngine

COUNT = 20_000
PREPARE = """
    sql.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, at REAL); CREATE INDEX names ON t (name)");
    for (let i = 0; i < 10000; i++) sql.exec("INSERT INTO t VALUES (?, ?, ?)", i, `name ${i}`, i / 3);
    storage.kv.put("counter", 0);
"""
STATEMENTS = {
    "point read": 'sql.exec("SELECT name FROM t WHERE id = ?", i % 10000).one()',
    "read by an index": 'sql.exec("SELECT id FROM t WHERE name = ?", `name ${i % 10000}`).one()',
    "insert": 'sql.exec("INSERT INTO t VALUES (?, ?, ?)", 10000 + i, "x", i)',
    "update": 'sql.exec("UPDATE t SET at = ? WHERE id = ?", i, i % 10000)',
    "kv.get": 'storage.kv.get("counter")',
    "kv.put": 'storage.kv.put("counter", i)',
    "a row of a long cursor": "rows.next()",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, RawEngine(Path(folder), cpu_ms=30_000) as engine:
        engine.open(1)
        engine.value(1, PREPARE)
        for name, statement in STATEMENTS.items():
            code = f"""
                const rows = sql.exec("SELECT * FROM t a, t b");
                for (let i = 0; i < {COUNT}; i++) {statement};
            """
            call = engine.send(1, code)
            cpu_us = engine.cpu_us(call)
            print(f"{name:24} {COUNT / cpu_us * 1e6:10,.0f} per second of CPU time")


if __name__ == "__main__":
    main()
