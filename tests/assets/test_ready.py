"""What the front keeps of small files: shared fairly by tenants, and dropped with the version."""

from __future__ import annotations

from dataclasses import replace

from atoll.asset_files.shares import Shares
from atoll.assets.rules import AssetRules
from atoll.assets.table import AssetTable, file_of
from atoll.front.ready import SWEPT, ReadyFiles
from atoll.workers import Version

BLOCK = b"content-type: text/plain\r\n"
GET = b"GET / HTTP/1.1\r\nHost: w\r\nAccept: */*\r\n\r\n"


def test_a_tenant_cannot_push_out_another() -> None:
    shares: Shares[int] = Shares(100)
    assert shares.put("small", -1, 10) == []
    gone = [key for n in range(50) for key in shares.put("large", n, 10)]
    assert gone == list(range(41))  # what it kept itself, the oldest first
    assert shares.size == 100


def test_a_tenant_with_little_takes_room_from_the_others() -> None:
    shares: Shares[int] = Shares(100)
    assert [key for n in range(10) for key in shares.put("first", n, 10)] == []
    assert [key for n in range(10, 15) for key in shares.put("second", n, 10)] == [0, 1, 2, 3, 4]
    shares.drop("second", 14)
    shares.drop("second", 14)
    assert shares.size == 90
    assert shares.put("second", 13, 30) == [10]  # it has grown above its share
    assert shares.put("third", 99, 200) != [] and shares.size <= 100


def site(count: int) -> Version:
    files = {f"/{n}": file_of(f"/{n}", f"{n:064}", 4, "") for n in range(count)}
    table = AssetTable(AssetRules("0" * 64), files, has_worker=False)
    return Version("v", "worker", "w", "tenant", (), "main.js", assets=table)


def keep(ready: ReadyFiles, version: Version, path: str, body: bytes = b"body") -> None:
    assert version.assets is not None
    ready.keep(version, version.assets, path, version.assets.files[path], "", BLOCK, body)


def test_a_response_is_found_by_its_path_alone() -> None:
    counted: list[tuple[str, int, int]] = []
    ready = ReadyFiles(10_000, lambda version, status, size: counted.append((version.id, status, size)), "localhost")
    version = site(2)
    keep(ready, version, "/0")
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\ndate: now\r\n\r\nbody"
    assert ready.find(version, b"/0", GET, b"date: now\r\n") == whole
    assert ready.find(version, b"/0?a=b?c", GET, b"date: now\r\n") == whole
    assert counted == [("v", 200, 4)] * 2
    for target in (b"/1", b"/%30", b"/0/", b"/./0", b"//0"):
        assert ready.find(version, target, GET, b"") is None
    for line in (b"Range: bytes=0-", b"IF-NONE-MATCH: x", b"authorization: x"):
        assert ready.find(version, b"/0", GET[:-2] + line + b"\r\n\r\n", b"") is None
    assert ready.find(site(2), b"/0", GET, b"") is None  # another version


def test_files_of_versions_that_come_and_go_are_not_kept() -> None:
    ready = ReadyFiles(10_000, lambda version, status, size: None, "localhost")
    version = replace(site(1), has_code=False)
    keep(ready, version, "/0")
    assert ready.find(version, b"/0", GET, b"") is None and not ready.kept.size


def test_what_was_kept_is_bounded_and_goes_with_its_version() -> None:
    ready = ReadyFiles(20_000, lambda version, status, size: None, "localhost")
    version = site(100)
    for n in range(100):
        keep(ready, version, f"/{n}", b"x" * 400)
    assert version.assets is not None
    assert 10 < len(version.assets.ready) < 25 and ready.kept.size <= 20_000
    assert ready.find(version, b"/0", GET, b"") is None and ready.find(version, b"/99", GET, b"") is not None
    kept = len(version.assets.ready)
    del version
    assert [len(home) for home in ready.gone] == [kept] and kept < SWEPT
    other = site(1)
    keep(ready, other, "/0")
    assert other.assets is not None
    assert not ready.gone and ready.kept.size == other.assets.ready[b"/0"].size
