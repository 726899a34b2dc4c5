"""`atoll migrate`: real nodes, a real PostgreSQL, and every row there and back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from atoll.cluster.moving.into_postgres import into_postgres
from atoll.errors import StartError
from atoll.manifests.every import moved_parts, tables
from tests.assets.sites import deploy_site
from tests.bindings.r2.test_r2_api import ask
from tests.postgres_server import Place, fresh_database, opened_database
from tests.running import Atoll

KV = """export default { async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === "PUT") { await env.KV.put(pathname, "v".repeat(searchParams.get("size"))); }
    if (request.method === "POST") { await env.JOBS.send(pathname, { delaySeconds: 3600 }); }
    return new Response((await env.KV.get(pathname) ?? "").length + env.WORD + (await env.SHARED.get()));
} }"""
BINDINGS = [
    {"type": "kv", "name": "KV", "namespace": "values"},
    {"type": "queue", "name": "JOBS", "queue": "jobs"},
    {"type": "secrets_store_secret", "name": "SHARED", "store": "team", "secret": "word"},
]
OBJECTS = {"small": b"s", "empty": b"", "large": bytes(range(256)) * 9_000}
PART = b"p" * (5 << 20)
SITE = {"/index.html": b"<h1>home</h1>" * 100, "/large.bin": bytes(range(256)) * 9_000}


def migrate(*words: str, store: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [Atoll(Path("/tmp")).command[0], "migrate", *words]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "ATOLL_STORE": store}, check=False
    )
    assert ran.returncode == code and "Traceback" not in ran.stderr, ran.stdout + ran.stderr
    return ran


def fill(node: Atoll) -> None:
    """Something of everything that moves."""
    assert node.control("POST", "/api/secrets-stores", {"name": "team"}).status == 201
    assert node.control("PUT", "/api/secrets-stores/team/secrets/word", {"value": "fish"}).status == 200
    assert node.control("POST", "/api/tenants", {"name": "acme"}).status == 201
    deployed = node.control("POST", "/api/workers", {"name": "app", "script": KV, "bindings": BINDINGS})
    assert deployed.status == 201, deployed.text
    assert node.control("PUT", "/api/workers/app/secrets/WORD", {"value": "sword"}).status in (200, 201)
    for path, size in (("/a", 10), ("/b", 100_000), ("/c", 3_000_000), ("/%00", 0)):
        assert node.request("PUT", node.host("app"), f"{path}?size={size}").status == 200
    for number in range(5):
        assert node.request("POST", node.host("app"), f"/job{number}").status == 200
    deploy_site(node, "site", SITE)
    assert node.control("POST", "/api/r2", {"name": "files"}).status == 201
    for key, body in OBJECTS.items():
        assert ask(node, "PUT", f"/files/objects/{key}", body).status == 200
    begun = ask(node, "POST", "/files/uploads/parts", b"").json
    part = ask(node, "PUT", f"/files/uploads/parts?part=1&upload_id={begun['upload_id']}", PART)
    assert part.status == 200, part.text
    (node.folder / "upload").write_text(json.dumps([begun["upload_id"], part.json["etag"]]))
    assert node.control("POST", "/api/r2-credentials", {"name": "moved"}).status == 201
    rule = {"id": "old", "prefix": "tmp/", "expire_days": 30}
    assert ask(node, "POST", "/files/lifecycle", rule).status == 201
    assert ask(node, "PUT", "/files/public").status == 200


def check(node: Atoll) -> None:
    """All of it is there."""
    assert [node.get("app", path).text for path in ("/a", "/b", "/c")] == [
        f"{n}swordfish" for n in (10, 100_000, 3_000_000)
    ]
    assert node.get("site", "/large.bin").body == SITE["/large.bin"]
    packed = node.request("GET", node.host("site"), "/", None, {"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    queue = node.control("GET", "/api/queues/jobs").json
    assert queue["delayed"] == 5, queue
    for key, body in OBJECTS.items():
        assert ask(node, "GET", f"/files/objects/{key}").body == body, key
    assert [each["name"] for each in node.control("GET", "/api/r2-credentials").json["credentials"]] == ["moved"]
    assert ask(node, "GET", "/files/lifecycle").json["rules"][0]["expire_days"] == 30
    assert ask(node, "GET", "/files/public").json["public"]
    assert "acme" in [tenant["name"] for tenant in node.control("GET", "/api/tenants").json["tenants"]]


@pytest.fixture
def place() -> Place:
    return asyncio.run(fresh_database())


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Path]:
    """The data folder of a node that was stopped."""
    node = Atoll(tmp_path / "first", engines=1, spares=0)
    node.start()
    try:
        fill(node)
    finally:
        assert node.stop() == 0
    yield node.folder / "data"


def tables_of(data: Path) -> dict[str, Any]:
    """All rows of the databases that move, without what belongs to one node or run."""
    found: dict[str, Any] = {}
    for name in ("atoll", "kv", "queues", "crons", "secrets_stores", "hyperdrive", "mtls_certificates", "r2/index"):
        connection = apsw.Connection(str(data / f"{name}.db"))
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if table not in (
                "code_caches",
                "large_values",
                "queue_ids",
                "sqlite_sequence",
                "bodies",
            ) and "stat" not in str(table):
                found[f"{name}.{table}"] = sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        connection.close()
    return found


def test_a_folder_moves_into_postgresql_and_back_and_nothing_is_lost(
    filled: Path, place: Place, tmp_path: Path
) -> None:
    before = tables_of(filled)
    moved = migrate("into-postgres", f"--data={filled}", "--json", store=place.url)
    assert json.loads(moved.stdout)["stays"] == []
    assert tables_of(filled) == before, "the source is as it was"
    nodes = [Atoll(tmp_path / name, store=place.url, engines=1, spares=0) for name in ("one", "two")]
    for node in nodes:
        (node.folder / "data").mkdir(parents=True, mode=0o700)
        shutil.copy(filled / "root-key", node.folder / "data/root-key")
        node.start()
    try:
        for node in nodes:
            check(node)
        changed = nodes[1].control("PUT", "/api/secrets-stores/team/secrets/word", {"value": "fishes"})
        assert changed.status == 200, "numbers of changes go on"
        assert nodes[0].get("app", "/a").text == "10swordfishes"
        assert nodes[0].control("PUT", "/api/secrets-stores/team/secrets/word", {"value": "fish"}).status == 200
        assert nodes[0].request("POST", nodes[0].host("app"), "/another").status == 200, "and those of messages"
        running = migrate(
            "into-folder", f"--data={tmp_path}/back", f"--root-key={filled}/root-key", store=place.url, code=1
        )
        assert "stop all nodes first" in running.stderr
    finally:
        assert [node.stop() for node in nodes] == [0, 0]
    wrong = migrate("into-folder", f"--data={tmp_path}/back/data", store=place.url, code=1)
    assert "root key" in wrong.stderr and not (tmp_path / "back/data").exists()
    migrate("into-folder", f"--data={tmp_path}/back/data", f"--root-key={filled}/root-key", store=place.url)
    after = tables_of(tmp_path / "back/data")
    for name in ("r2/index.buckets", "r2/index.usage", "r2/index.parts", "r2/index.public_buckets"):
        assert after[name] == before[name], name
    for name in (
        "r2/index.objects",
        "kv.entries",
        "kv.namespaces",
        "queues.queues",
        "atoll.workers",
        "atoll.tenants",
        "atoll.asset_files",
    ):
        assert len(after[name]) == len(before[name]), name
    assert len(after["queues.messages"]) == 6 and after["queues.messages"][:5] == before["queues.messages"]
    back = Atoll(tmp_path / "back", engines=1, spares=0)
    back.start()
    try:
        assert back.control("DELETE", "/api/queues/jobs/messages").status in (200, 204, 404, 405)
        assert back.get("app", "/c").text == "3000000swordfish"
        assert back.get("site", "/large.bin").body == SITE["/large.bin"]
        upload_id, etag = json.loads((filled.parent / "upload").read_text())
        parts = {"upload_id": upload_id, "parts": [{"part": 1, "etag": etag}]}
        done = ask(back, "POST", "/files/complete/parts", parts)
        assert done.status == 200 and ask(back, "GET", "/files/objects/parts").body == PART, done.text
    finally:
        assert back.stop() == 0


def test_every_binding_with_tables_in_postgresql_is_moved() -> None:
    assert set(tables()) == set(moved_parts())


SPOIL = """
CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.expires_at := 1; RETURN NEW; END $$;
CREATE TRIGGER spoil BEFORE INSERT ON kv_entries FOR EACH ROW WHEN (NEW.size > 1000000) EXECUTE FUNCTION spoil();
"""


async def test_a_row_that_differs_undoes_everything(filled: Path) -> None:
    pool = await opened_database("kv", "queue", "cron", "email", "assets", "r2")
    async with pool.transaction() as connection:
        await connection.execute(SPOIL)  # one large entry changes on its way
    with pytest.raises(StartError, match="entries of KV: row"):
        await into_postgres(pool._address, filled, lambda name, count: None, None)
    assert await pool.value("SELECT count(*) FROM kv_entries") == await pool.value("SELECT head FROM feed") == 0
    async with pool.transaction() as connection:
        await connection.execute("DROP TRIGGER spoil ON kv_entries")
    told: list[str] = []
    await into_postgres(pool._address, filled, lambda name, count: told.append(name), None)
    assert "entries of KV" in told and "files of static assets" in told
    with pytest.raises(StartError, match="not empty"):
        await into_postgres(pool._address, filled, lambda name, count: None, None)
    await pool.close()


def test_what_cannot_be_shared_is_named_and_stays_only_if_that_is_wanted(place: Place, tmp_path: Path) -> None:
    node = Atoll(tmp_path / "first", engines=1, spares=0)
    node.start()
    try:
        assert node.control("POST", "/api/d1", {"name": "shop"}).status == 201
        busy = migrate("into-postgres", f"--data={node.folder}/data", store=place.url, code=1)
        assert "another" in busy.stderr and "hint:" in busy.stderr, busy.stderr
    finally:
        assert node.stop() == 0
    refused = migrate("into-postgres", f"--data={node.folder}/data", store=place.url, code=1)
    assert "D1 databases" in refused.stderr and "--leave-behind" in refused.stderr
    moved = migrate("into-postgres", f"--data={node.folder}/data", "--leave-behind", store=place.url)
    assert "stays in the folder: D1 databases" in moved.stderr
    none = migrate("into-postgres", f"--data={tmp_path}/none", store=place.url, code=1)
    assert "is not the data folder" in none.stderr and not (tmp_path / "none").exists()
