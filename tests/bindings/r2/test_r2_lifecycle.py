"""Lifecycle rules: what they delete and what they leave, by a clock of the test."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from atoll.bindings.r2.around import lifecycle as module
from atoll.bindings.r2.around.lifecycle import Lifecycle, LifecycleRule, LifecycleRules, checked_lifecycle
from atoll.bindings.r2.around.settings import BucketSettings
from atoll.bindings.r2.records import RecordedStore
from atoll.bindings.r2.store import BucketPlace, ListQuery, ObjectMeta
from atoll.errors import InvalidArgument
from tests.bindings.r2.test_r2_api import ask
from tests.bindings.r2.test_r2_store import ALICE, BOB, put, read, store
from tests.bindings.r2.test_s3 import Client, names, refused, s3
from tests.cli.test_projects import run
from tests.running import Atoll

__all__ = ["names", "s3", "store"]  # fixtures

DAY = 86_400


class Swept:
    """A store whose rules are applied some days from now."""

    def __init__(self, store: RecordedStore) -> None:
        self.days = 0.0
        self.store = store
        self.settings = BucketSettings(store.records)
        self._lifecycle = Lifecycle(store, self.settings, clock=lambda: time.time() + self.days * DAY)

    async def rule(self, place: BucketPlace, *rules: LifecycleRule) -> None:
        wanted = checked_lifecycle(LifecycleRules(list(rules)))
        await self.settings.change(place, LifecycleRules, lambda old: wanted)

    async def keys(self, days: float, place: BucketPlace = ALICE) -> list[bytes]:
        self.days = days
        await self._lifecycle.sweep()
        return [each.key for each in (await self.store.list(place, ListQuery())).objects]


@pytest.fixture
async def swept(store: RecordedStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Swept]:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0)
    yield Swept(store)


async def test_objects_expire_by_prefix_and_age(swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "STEP", 1)
    for key in (b"log/1", b"log/2", b"log/3", b"loud", b"tmp"):
        await put(swept.store, key, b"x")
        await put(swept.store, key, b"x", BOB)
    await swept.rule(ALICE, LifecycleRule("logs", "log/", 3), LifecycleRule("off", "", 1, enabled=False))
    everything = [b"log/1", b"log/2", b"log/3", b"loud", b"tmp"]
    assert await swept.keys(2.99) == everything
    assert await swept.keys(3.01) == [b"loud", b"tmp"]
    assert await swept.keys(3.01, BOB) == everything, "the bucket of another tenant"
    await swept.rule(ALICE, LifecycleRule("all", expire_days=400))
    assert await swept.keys(399) == [b"loud", b"tmp"] and await swept.keys(401) == []


async def test_of_several_rules_the_shortest_decides(swept: Swept) -> None:
    for key in (b"a/b/1", b"a/2", b"c", b"d"):
        await put(swept.store, key, b"x")
    rules = [("a/", 5), ("a/b/", 2), ("a/b/", 9), ("c", 3)]
    await swept.rule(ALICE, *(LifecycleRule(str(at), prefix, days) for at, (prefix, days) in enumerate(rules)))
    assert await swept.keys(2.1) == [b"a/2", b"c", b"d"]
    assert await swept.keys(3.1) == [b"a/2", b"d"] and await swept.keys(5.1) == [b"d"]
    await swept.rule(ALICE, LifecycleRule("all", expire_days=7), LifecycleRule("d", "d", 20))
    assert await swept.keys(7.1) == []


async def test_an_object_that_is_replaced_meanwhile_stays(swept: Swept) -> None:
    first = await put(swept.store, b"k", b"old")
    assert first is not None
    await put(swept.store, b"k", b"new")
    assert await swept.store.expire(ALICE, [(b"k", first.version), (b"none", first.version)]) == 0
    assert await read(swept.store, b"k") == b"new"


async def test_unfinished_uploads_are_aborted(swept: Swept) -> None:
    for key in (b"a/1", b"a/2", b"b"):
        await swept.store.create_upload(ALICE, key, ObjectMeta())
    await swept.rule(ALICE, LifecycleRule("uploads", "a/", abort_days=2))

    async def uploads(days: float) -> list[bytes]:
        await swept.keys(days)
        return [each.key for each in await swept.store.uploads(ALICE, b"", (b"", ""), 10)]

    assert await uploads(1.9) == [b"a/1", b"a/2", b"b"] and await uploads(2.1) == [b"b"]


async def test_the_rules_go_with_the_bucket(swept: Swept) -> None:
    await swept.rule(ALICE, LifecycleRule("all", expire_days=1))
    await swept.store.drop(ALICE)
    await swept.store.create(ALICE, 0)
    await put(swept.store, b"k", b"v")
    assert await swept.keys(5) == [b"k"]


@pytest.mark.parametrize(
    "rule",
    [
        {"id": "nothing"},
        {"id": "", "expire_days": 1},
        {"id": "low", "expire_days": 0},
        {"id": "long", "abort_days": 8},
        {"id": "key", "prefix": "k" * 1025, "expire_days": 1},
    ],
)
def test_rules_that_are_wrong(rule: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        checked_lifecycle(LifecycleRules([LifecycleRule(**rule)]))


def test_rules_with_boto3_over_http_and_from_the_command_line(atoll: Atoll, s3: Client, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    s3.create_bucket(Bucket="aging")
    assert refused(s3.get_bucket_lifecycle_configuration, Bucket="aging") == (404, "NoSuchLifecycleConfiguration")
    rules = [
        {"ID": "logs", "Filter": {"Prefix": "log/"}, "Status": "Enabled", "Expiration": {"Days": 30}},
        {
            "ID": "rest", "Filter": {"Prefix": ""}, "Status": "Disabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2},
        },
    ]  # fmt: skip
    s3.put_bucket_lifecycle_configuration(Bucket="aging", LifecycleConfiguration={"Rules": rules})
    assert s3.get_bucket_lifecycle_configuration(Bucket="aging")["Rules"] == rules
    moved = {"ID": "x", "Filter": {"Prefix": ""}, "Status": "Enabled", "Expiration": {"Date": "2030-01-01"}}
    change = s3.put_bucket_lifecycle_configuration
    assert refused(change, Bucket="aging", LifecycleConfiguration={"Rules": [moved]}) == (501, "NotImplemented")
    run(
        tmp_path,
        "r2",
        "bucket",
        "lifecycle",
        "add",
        "aging",
        "tmp files",
        "--prefix",
        "t/",
        "--expire-days",
        "1",
        **node,
    )
    again = run(
        tmp_path, "r2", "bucket", "lifecycle", "add", "aging", "logs", "--abort-multipart-days", "1", code=1, **node
    )
    assert "same id" in again.stderr
    run(tmp_path, "r2", "bucket", "lifecycle", "add", "aging", "nothing", code=1, **node)
    listed = run(tmp_path, "r2", "bucket", "lifecycle", "list", "aging", **node).stdout
    assert "logs" in listed and "tmp files" in listed
    assert len(s3.get_bucket_lifecycle_configuration(Bucket="aging")["Rules"]) == 3
    run(tmp_path, "r2", "bucket", "lifecycle", "remove", "aging", "tmp files", **node)
    missing = run(tmp_path, "r2", "bucket", "lifecycle", "remove", "aging", "tmp files", code=1, **node)
    assert "lifecycle list aging" in missing.stderr
    assert [each["id"] for each in ask(atoll, "GET", "/aging/lifecycle").json["rules"]] == ["logs", "rest"]
    assert ask(atoll, "PUT", "/aging/lifecycle", {"rules": [{"id": "x", "abort_days": 9}]}).status == 400
    s3.delete_bucket_lifecycle(Bucket="aging")
    assert ask(atoll, "GET", "/aging/lifecycle").json == {"rules": []}
