"""KV, D1, R2 and queues, by the real wrangler."""

from __future__ import annotations

import json
from pathlib import Path

from tests.wrangler.stock import Wrangler, check_requests

DATABASE = "postgres://ada%40x:s%25cret@db.example:5432/a%2Fb"


def test_kv_round_trip(wrangler: Wrangler, tmp_path: Path) -> None:
    def run(command: str) -> str:
        said = wrangler.run(tmp_path, *command.split())
        check_requests(command, wrangler.asked())
        return said

    assert '"id": "wr-kv"' in run("kv namespace create wr-kv")
    run("kv key put a/b one --namespace-id wr-kv --remote --metadata {} --ttl 3600")
    (tmp_path / "pairs.json").write_text(
        '[{"key": "b", "value": "two"}, {"key": "c", "value": "eA==", "base64": true}]'
    )
    run("kv bulk put pairs.json --namespace-id wr-kv --remote")
    assert run("kv key get a/b --namespace-id wr-kv --remote").startswith("one")
    keys = json.loads(run("kv key list --namespace-id wr-kv --remote"))
    assert [each["name"] for each in keys] == ["a/b", "b", "c"] and keys[0]["metadata"] == {}
    assert "404: Not Found" in wrangler.run(
        tmp_path, "kv", "key", "get", "no", "--namespace-id", "wr-kv", "--remote", fails=True
    )


def test_d1_round_trip(wrangler: Wrangler, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        said = wrangler.run(tmp_path, "d1", *words)
        check_requests(" ".join(["d1", *words[:1]]), wrangler.asked("wr-d1"))
        return said

    said = run("create", "wr-d1")
    uuid = said.partition('database_id = "')[2].partition('"')[0]
    (tmp_path / "wrangler.toml").write_text(
        'name = "wr-d1-user"\ncompatibility_date = "2026-01-01"\n'
        f'[[d1_databases]]\nbinding = "DB"\ndatabase_name = "wr-d1"\ndatabase_id = "{uuid}"\n'
    )
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations/0001_first.sql").write_text("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);")
    run("migrations", "apply", "wr-d1", "--remote")
    (tmp_path / "more.sql").write_text(
        "INSERT INTO notes (text) VALUES ('one');\nINSERT INTO notes (text) VALUES ('two');\n"
    )
    run("execute", "wr-d1", "--remote", "--file", "more.sql", "-y")
    said = wrangler.run(
        tmp_path, "d1", "execute", "wr-d1", "--remote", "--json", "--command", "SELECT text FROM notes; SELECT 1 AS x"
    )
    assert [each["results"] for each in json.loads(said)] == [[{"text": "one"}, {"text": "two"}], [{"x": 1}]]
    run("export", "wr-d1", "--remote", "--output", "out.sql")
    assert "INSERT INTO" in (tmp_path / "out.sql").read_text()
    assert "no such table" in wrangler.run(
        tmp_path, "d1", "execute", "wr-d1", "--remote", "--command", "SELECT * FROM nowhere", fails=True
    )


def test_r2_round_trip(wrangler: Wrangler, tmp_path: Path) -> None:
    def run(command: str) -> str:
        said = wrangler.run(tmp_path, *command.split())
        check_requests(command, wrangler.asked())
        return said

    run("r2 bucket create wr-bucket")
    assert "wr-bucket" in run("r2 bucket list")
    (tmp_path / "in.bin").write_bytes(bytes(range(256)) * 100)
    run("r2 object put wr-bucket/a/in.bin --file in.bin --remote")
    run("r2 object get wr-bucket/a/in.bin --file out.bin --remote")
    assert (tmp_path / "out.bin").read_bytes() == (tmp_path / "in.bin").read_bytes()
    run("r2 object delete wr-bucket/a/in.bin --remote")


def test_hyperdrive_round_trip(wrangler: Wrangler, tmp_path: Path) -> None:
    def run(command: str) -> str:
        said = wrangler.run(tmp_path, *command.split())
        check_requests(command.replace(DATABASE, "URL"), wrangler.asked())
        return said

    assert "config: wr-database" in run(f"hyperdrive create wr-database --connection-string {DATABASE}")
    assert "db.example" in run("hyperdrive list")
    run("hyperdrive update wr-database --origin-host other.example --origin-port 6432 --sslmode require")
    shown = run("hyperdrive get wr-database")
    found = json.loads(shown[shown.index("{") :])
    assert found["origin"] == {
        "scheme": "postgresql", "host": "other.example", "port": 6432, "database": "a/b", "user": "ada@x",
    }  # fmt: skip
    assert found["mtls"] == {"sslmode": "require"} and "s%cret" not in shown
    refused = wrangler.run(tmp_path, "hyperdrive", "update", "wr-database", "--max-age", "5", fails=True)
    assert "queries are not cached here" in refused
    refused = wrangler.run(tmp_path, "hyperdrive", "update", "wr-database", "--name", "other", fails=True)
    assert "cannot be renamed here" in refused
    assert "already exists" in wrangler.run(
        tmp_path, "hyperdrive", "create", "wr-database", "--connection-string", DATABASE, fails=True
    )
    run("hyperdrive delete wr-database")
    assert "there is no database" in wrangler.run(tmp_path, "hyperdrive", "get", "wr-database", fails=True)


def test_dispatch_namespaces_are_refused_in_words(wrangler: Wrangler, tmp_path: Path) -> None:
    for words in (("list",), ("create", "spaces"), ("get", "spaces")):
        said = wrangler.run(tmp_path, "dispatch-namespace", *words, fails=True)
        assert "not part of Atoll" in said and "7003" in said, said


def test_queues_round_trip(wrangler: Wrangler, tmp_path: Path) -> None:
    def run(command: str) -> str:
        said = wrangler.run(tmp_path, *command.split())
        check_requests(command, wrangler.asked())
        return said

    run("queues create wr-jobs")
    assert "wr-jobs" in run("queues list")
    run("queues pause-delivery wr-jobs")
