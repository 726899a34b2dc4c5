"""When the disk is full or the node is killed: what was acknowledged is whole, and nothing else is there."""

from __future__ import annotations

import hashlib
import http.client
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.bindings.r2.store import ListQuery
from atoll.errors import StorageFailed
from tests.bindings.r2.backends import Backend
from tests.bindings.r2.test_r2_store import ALICE, LARGE, put, read
from tests.disks import SmallDisk, small_disk
from tests.running import Atoll

SCRIPT = """
export default {
  async fetch(request, env) {
    const url = new URL(request.url), key = url.pathname.slice(1);
    if (request.method === "PUT") {
      if (!url.searchParams.has("parts")) return Response.json(await env.R2.put(key, request.body));
      const data = await request.bytes();
      const upload = await env.R2.createMultipartUpload(key);
      const parts = [];
      for (let n = 1; n <= 3; n++) parts.push(await upload.uploadPart(n, new Uint8Array([...data.subarray(0, 10), ...new Uint8Array(n < 3 ? 5 << 20 : 1)]).subarray(0, n < 3 ? 5 << 20 : 1)));
      return Response.json(await upload.complete(parts));
    }
    if (key === "") return Response.json((await env.R2.list()).objects.map((o) => [o.key, o.size, o.etag]));
    const object = await env.R2.get(key);
    return object === null ? new Response(null, { status: 404 }) : new Response(object.body);
  },
};
"""  # noqa: E501


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 40) as made:
        yield made


async def test_a_full_disk_is_told_and_loses_nothing_and_recovers(disk: SmallDisk) -> None:
    store = SqliteObjects(disk.folder)
    await store.create(ALICE, 0)
    stored = 0
    with pytest.raises(StorageFailed, match="the disk of this node is full"):
        for stored in range(100):
            await put(store, b"%d" % stored, LARGE[stored:])
    assert 20 < stored < 99
    for key in range(stored):
        assert await read(store, b"%d" % key) == LARGE[key:], "what was acknowledged is there"
    assert await store.head(ALICE, b"%d" % stored) is None
    await Backend().has(disk.folder, stored)
    await store.delete(ALICE, [b"0", b"1"])
    await Backend().has(disk.folder, stored - 2)
    await put(store, b"again", LARGE)
    assert await read(store, b"again") == LARGE
    await store.close()


def test_a_killed_node_has_what_it_acknowledged_and_nothing_half(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    node.deploy("store", SCRIPT, bindings=[{"type": "r2", "name": "R2", "bucket": "crash"}])
    acknowledged: dict[str, tuple[int, str]] = {}
    enough = threading.Event()

    def upload(number: int) -> None:
        """Put objects of many sizes, one after the other, until the node is gone."""
        try:
            for count in range(10_000):
                key, parts = f"{number}-{count}", count % 8 == 7
                data = bytes([number, count % 256]) * (20_000 + 60_000 * (count % 5))
                connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
                path = f"/{key}" + ("?parts" if parts else "")
                connection.request("PUT", path, data, {"Host": node.host("store")})
                answer = connection.getresponse()
                body = answer.read()
                connection.close()
                if answer.status == 200:
                    size = (10 << 20) + 1 if parts else len(data)
                    acknowledged[key] = (size, "" if parts else hashlib.md5(data).hexdigest())
                    assert f'"size":{size}'.encode() in body
                if len(acknowledged) >= 40:
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
    folder = node.folder / "data" / "r2"
    node.start()
    listed = {key: (size, etag) for key, size, etag in node.get("store").json}
    for key, (size, etag) in acknowledged.items():
        assert listed[key][0] == size and (not etag or listed[key][1] == etag), key
    for key, (size, etag) in listed.items():
        content = node.get("store", f"/{key}").body
        assert len(content) == size, "a listed object is whole, acknowledged or not"
        assert "-" in etag or hashlib.md5(content).hexdigest() == etag

    def is_swept() -> bool:
        return not list((folder / "r2-unfinished").iterdir())

    node.wait_until(is_swept, 20)
    assert node.stop() == 0


async def test_a_start_does_not_look_at_every_object(tmp_path: Path) -> None:
    """Only files in progress are looked at; an object that has lost its file fails alone."""
    store = SqliteObjects(tmp_path)
    await store.create(ALICE, 0)
    await put(store, b"a", LARGE)
    await put(store, b"b", LARGE)
    await store.close()
    [first, _] = sorted(path for path in (tmp_path / "r2" / "objects").rglob("*") if path.is_file())
    first.unlink()
    store = SqliteObjects(tmp_path)
    with pytest.raises(StorageFailed, match="the storage of this node is damaged"):
        await read(store, b"a")
    assert await read(store, b"b") == LARGE
    assert len((await store.list(ALICE, ListQuery())).objects) == 2
    await store.close()
