"""Event notifications: every change that was acknowledged reaches the queue, also after a kill, and nothing else."""

from __future__ import annotations

import http.client
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from atoll.bindings.r2.around import notifications as module
from atoll.bindings.r2.around.notifications import NotificationRule, NotificationRules, Notifications
from atoll.bindings.r2.around.settings import BucketSettings
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.postgres.store import PostgresObjects
from atoll.bindings.r2.records import RecordedStore
from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.bindings.r2.store import ObjectMeta, ObjectStore
from atoll.errors import BindingRefused
from tests.bindings.r2.test_r2_api import ask, code
from tests.bindings.r2.test_r2_store import ALICE, BOB, put, store
from tests.bindings.r2.test_s3 import Client, client_of, keys_of, names
from tests.cli.test_projects import run
from tests.eventually import eventually
from tests.running import Atoll

__all__ = ["names", "store"]  # fixtures


class Sink:
    """Queues of the test. The real ones are in the tests against a node below."""

    def __init__(self) -> None:
        self.is_full = False
        self.messages: list[tuple[str, str, dict[str, Any]]] = []

    async def knows(self, tenant: str, queue: str) -> bool:
        return queue != "gone"

    async def deliver(self, tenant: str, queue: str, bodies: Sequence[bytes]) -> bool:
        if self.is_full and queue != "other":
            raise BindingRefused("full")
        self.messages += [(tenant, queue, json.loads(body)) for body in bodies]
        return queue != "gone"

    def told(self) -> list[tuple[str, str, str]]:
        return [(queue, body["action"], body["object"]["key"]) for _, queue, body in self.messages]


@pytest.fixture
async def sink(store: RecordedStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sink]:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    found, settings = Sink(), BucketSettings(store.records)
    both = ["object-create", "object-delete"]
    rules = [
        NotificationRule("1", "all", both),
        NotificationRule("2", "other", ["object-delete"], "a/", ".txt"),
    ]
    await settings.change(ALICE, NotificationRules, lambda old: NotificationRules(rules))
    notifications = Notifications(store.records, found, look_seconds=1, clock=lambda: 1_700_000_000.5)
    store.noting = notifications
    yield found
    await notifications.close()


async def waiting(store: ObjectStore) -> int:
    if isinstance(store, PostgresObjects):
        return int(await store._postgres.value("SELECT count(*) FROM r2_events"))
    assert isinstance(store, SqliteObjects)
    return store.database.read(lambda c: int(c.execute("SELECT count(*) FROM events").fetchone()[0]))  # type: ignore[index, arg-type]


async def all_told(store: ObjectStore) -> None:
    async def look() -> bool:
        return await waiting(store) == 0

    await eventually(look, "no notification waits")


async def test_changes_are_told_in_order_and_as_cloudflare_tells_them(store: ObjectStore, sink: Sink) -> None:
    stored = await put(store, b"a/1.txt", b"value")
    assert stored is not None
    await put(store, b"a/1.txt", b"again")
    await put(store, b"k", b"not of this tenant", BOB)
    await store.delete(ALICE, [b"a/1.txt", b"none"])
    await put(store, b"old", b"x")
    [old] = [each for each in [await store.head(ALICE, b"old")] if each is not None]
    await store.expire(ALICE, [(b"old", old.version)])
    upload = await store.create_upload(ALICE, b"m", ObjectMeta())
    content = await store.begin(ALICE, 3)
    await content.write(b"abc")
    part = await content.put_part(upload, b"m", 1)
    content.close()
    await store.complete(ALICE, b"m", upload, [(1, part.etag)])
    await all_told(store)
    of_all = [told[1:] for told in sink.told() if told[0] == "all"]
    assert of_all == [
        ("PutObject", "a/1.txt"), ("PutObject", "a/1.txt"), ("DeleteObject", "a/1.txt"), ("PutObject", "old"),
        ("LifecycleDeletion", "old"), ("CompleteMultipartUpload", "m"),
    ]  # fmt: skip
    assert [told[1:] for told in sink.told() if told[0] == "other"] == [("DeleteObject", "a/1.txt")]
    first = next(body for _, queue, body in sink.messages if queue == "all")
    assert first == {
        "account": "alice", "bucket": "files", "object": {"key": "a/1.txt", "size": 5, "eTag": stored.etag},
        "action": "PutObject", "eventTime": "2023-11-14T22:13:20.500Z",
    }  # fmt: skip
    gone = next(body for _, _, body in sink.messages if body["action"] == "DeleteObject")
    assert gone["object"] == {"key": "a/1.txt"}


async def test_a_full_queue_delays_its_own_messages_and_then_refuses_changes(
    store: ObjectStore, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    sink.is_full = True
    for key in (b"a/1.txt", b"2", b"3"):
        await put(store, key, b"x")
    with pytest.raises(R2Refused, match="consume some messages"):
        await put(store, b"4", b"x")
    assert await store.head(ALICE, b"4") is None, "a change that cannot be told is not made"
    await put(store, b"4", b"x", BOB)
    sink.is_full = False
    await all_told(store)
    sink.is_full = True
    await store.delete(ALICE, [b"a/1.txt"])

    async def is_other() -> bool:
        return ("other", "DeleteObject", "a/1.txt") in sink.told()

    await eventually(is_other, "the other queue has its message")

    async def only_one_waits() -> bool:
        return await waiting(store) == 1

    await eventually(only_one_waits, "the message of the full queue alone waits")
    sink.is_full = False
    await all_told(store)
    assert [told for told in sink.told() if told[0] == "all"][-1] == ("all", "DeleteObject", "a/1.txt")


async def test_a_refused_put_tells_nothing(store: ObjectStore, sink: Sink) -> None:
    from atoll.bindings.r2.conditions import EtagTest, OnlyIf

    await put(store, b"k", b"1")
    assert await put(store, b"k", b"2", only_if=OnlyIf(differs=(EtagTest("*"),))) is None
    await all_told(store)
    assert sink.told() == [("all", "PutObject", "k")]


def messages(node: Atoll, queue: str) -> list[dict[str, Any]]:
    found, cursor = [], ""
    while True:
        page = node.control("GET", f"/api/queues/{queue}/messages?limit=100{cursor}").json
        found += [each["body"] for each in page["messages"]]
        if not page.get("cursor"):
            return [each if isinstance(each, dict) else json.loads(each) for each in found]
        cursor = f"&cursor={page['cursor']}"


SCRIPT = """export default {
  async fetch(request, env) { await env.R2.put("from worker", "x"); return new Response("ok"); },
  async queue(batch, env) { for (const m of batch.messages) await env.SEEN.put(m.body.action + " " + m.body.object.key, "1"); },
};"""  # noqa: E501


def test_changes_by_workers_s3_and_commands_reach_a_consumer(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    node = new_atoll(engines=1)
    env = {"ATOLL_API": f"http://localhost:{node.port}"}
    wanted = {"queue": "changes", "event_types": ["object-create"]}
    node.control("POST", "/api/r2", {"name": "watched"})
    missing = ask(node, "POST", "/watched/notifications", wanted)
    assert code(missing) == 10007 and "queues" in missing.text
    bindings = [{"type": "r2", "name": "R2", "bucket": "watched"}, {"type": "kv", "name": "SEEN", "namespace": "seen"}]
    consumers = [{"queue": "changes", "max_batch_timeout": 0}]
    node.deploy("watcher", SCRIPT, bindings=bindings, queue_consumers=consumers)
    assert ask(node, "POST", "/watched/notifications", wanted | {"event_types": ["wat"]}).status == 400
    create = ("r2", "bucket", "notification", "create", "watched", "--queue", "changes")
    run(tmp_path, *create, "--event-type", "object-create", "--event-type", "object-delete", **env)
    listed = run(tmp_path, "r2", "bucket", "notification", "list", "watched", "--json", **env).stdout
    [rule] = json.loads(listed)
    assert node.get("watcher").text == "ok"
    s3: Client = client_of(node, keys_of(node))
    s3.put_object(Bucket="watched", Key="by s3", Body=b"1")
    s3.copy_object(Bucket="watched", Key="copy", CopySource={"Bucket": "watched", "Key": "by s3"})
    s3.delete_object(Bucket="watched", Key="by s3")
    s3.close()

    def seen() -> list[str]:
        return sorted(each["name"] for each in node.control("GET", "/api/kv/seen/keys").json["keys"])

    told = ["CopyObject copy", "DeleteObject by s3", "PutObject by s3", "PutObject from worker"]
    node.wait_until(lambda: seen() == told, 30)
    run(tmp_path, "r2", "bucket", "notification", "delete", "watched", rule["id"], **env)
    assert ask(node, "GET", "/watched/notifications").json == {"rules": []}
    assert "no notifications" in run(tmp_path, "r2", "bucket", "notification", "list", "watched", **env).stderr
    run(tmp_path, "r2", "bucket", "notification", "delete", "watched", rule["id"], code=1, **env)


def test_after_a_kill_every_acknowledged_change_is_told(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    node.control("POST", "/api/r2", {"name": "crash"})
    assert node.control("POST", "/api/queues", {"name": "crash"}).status == 201
    node.control("POST", "/api/queues/crash/pause")
    created = ask(node, "POST", "/crash/notifications", {"queue": "crash", "event_types": ["object-create"]})
    assert created.status == 201
    acknowledged: set[str] = set()
    enough = threading.Event()

    def upload(number: int) -> None:
        try:
            for count in range(10_000):
                key = f"{number}-{count}"
                connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
                path = f"/api/r2/crash/objects/{key}"
                connection.request("PUT", path, b"x" * (count % 3), {"Host": node.control_host})
                answer = connection.getresponse()
                answer.read()
                connection.close()
                if answer.status == 200:
                    acknowledged.add(key)
                if len(acknowledged) >= 60:
                    enough.set()
        except (OSError, http.client.HTTPException):
            pass  # the node is gone

    threads = [threading.Thread(target=upload, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    node.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()
    node.start()
    told: set[str] = set()

    def is_told() -> bool:
        told.update(each["object"]["key"] for each in messages(node, "crash"))
        return acknowledged <= told

    node.wait_until(is_told, 30)
    stored = {each["key"] for each in ask(node, "GET", "/crash/objects").json["objects"]}
    assert told <= stored, "what was not stored is not told"
