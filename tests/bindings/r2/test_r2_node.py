"""R2 in the life of a node: backups while it is written to, a new root key, tenants that go, metrics."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable
from pathlib import Path

from tests.bindings.r2.test_s3 import client_of, keys_of, names, refused
from tests.cli.test_projects import run
from tests.running import Answer, Atoll

__all__ = ["names"]  # a fixture: names below localhost are this machine


def backed_up(node: Atoll) -> bytes:
    """A backup. The one before may not have ended yet."""
    answers: list[Answer] = []

    def ask() -> bool:
        answers.append(node.control("GET", "/api/backup?logs=false"))
        return answers[-1].status == 200

    node.wait_until(ask, 30)
    return answers[-1].body


def test_a_backup_of_a_busy_bucket_is_whole(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    node = new_atoll(engines=1)
    node.control("POST", "/api/r2", {"name": "busy"})
    s3 = client_of(node, keys_of(node))
    for number in range(20):
        s3.put_object(Bucket="busy", Key=f"old-{number}", Body=bytes([number]) * 200_000)
    stop = threading.Event()
    changes = 0

    def change() -> None:
        """Replace and delete all the time."""
        nonlocal changes
        client = client_of(node, keys_of(node))
        while not stop.is_set():
            key = f"old-{changes % 20}"
            client.put_object(Bucket="busy", Key=key, Body=changes.to_bytes(4, "big") * 50_000)
            client.delete_object(Bucket="busy", Key=f"old-{(changes + 7) % 20}")
            changes += 1
        client.close()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for count in range(3):
            seen = changes
            node.wait_until(lambda at=seen: changes > at, 30)  # type: ignore[misc]
            (tmp_path / f"{count}.tar").write_bytes(backed_up(node))
    finally:
        stop.set()
        thread.join()
    s3.close()
    for count in range(3):
        folder = tmp_path / f"restored{count}"
        run(tmp_path, "restore", f"{count}.tar", "--data", str(folder / "data"))
        restored = Atoll(folder, engines=1)
        restored.start()
        try:
            listed = restored.control("GET", "/api/r2/busy/objects").json["objects"]
            assert listed
            for each in listed:
                content = restored.control("GET", f"/api/r2/busy/objects/{each['key']}")
                assert content.status == 200 and hashlib.md5(content.body).hexdigest() == each["etag"]
            files = folder / "data" / "r2" / "objects"

            def no_strays(files: Path = files, count: int = len(listed)) -> bool:
                return sum(1 for path in files.rglob("*") if path.is_file()) == count

            restored.wait_until(no_strays, 20)
        finally:
            restored.stop()


def test_access_keys_outlive_a_new_root_key_and_a_restart_but_not_their_tenant(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    for tenant in ("gone", "stays"):
        assert node.control("POST", "/api/tenants", {"name": tenant}).status == 201
    gone, stays = keys_of(node, "gone"), keys_of(node, "stays", name="kept")
    assert node.control("POST", "/api/secrets/rotate-key").status == 200
    node.stop()
    node.start()
    raw = b"".join(path.read_bytes() for path in (node.folder / "data" / "r2").glob("index.db*"))
    assert stays["access_key_id"].encode() in raw and stays["secret_access_key"].encode() not in raw
    client = client_of(node, stays)
    client.create_bucket(Bucket="some")
    client.upload_fileobj(io.BytesIO(b"x" * 100), "some", "key")
    old = client_of(node, gone)
    old.create_bucket(Bucket="some")
    assert node.control("DELETE", "/api/tenants/gone").status == 409, "it has a bucket"
    old.delete_bucket(Bucket="some")
    assert node.control("DELETE", "/api/tenants/gone").status == 204
    assert refused(old.list_buckets) == (403, "InvalidAccessKeyId")
    metrics = node.control("GET", "/metrics").text
    assert 'atoll_r2_objects{bucket="some",tenant="stays"} 1.0' in metrics
    usage = node.control("GET", "/api/tenants/stays").json["usage"]
    assert (usage["r2_buckets"], usage["r2_objects"]) == (1, 1) and usage["r2_bytes"] > 100
    for each in (client, old):
        each.close()
