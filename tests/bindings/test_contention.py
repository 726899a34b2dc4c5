"""Many workers write at once to a disk with a slow fsync: all wait a little, none is refused or forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from atoll.embed import Atoll

WORKERS = 50
CALLS = 4
SYNC_SECONDS = 0.03
WORKER = """export default {
  async fetch(request, env) {
    const key = new URL(request.url).searchParams.get("key");
    await Promise.all([env.KV.put(key, key), env.JOBS.send(key, { contentType: "text" })]);
    return new Response(await env.KV.get(key));
  },
};"""


class SlowFile(apsw.VFSFile):
    seconds = 0.0  # additional time of an fsync
    syncs = 0

    def xSync(self, flags: int) -> None:
        time.sleep(SlowFile.seconds)
        SlowFile.syncs += 1
        super().xSync(flags)


class SlowDisk(apsw.VFS):
    """A disk whose fsync can be slowed, like a busy spinning disk or a network volume."""

    def __init__(self, usual: str) -> None:
        super().__init__("slow", usual, makedefault=True)
        self._usual = usual

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return SlowFile(self._usual, name, flags)


@pytest.fixture
def slow_disk() -> Iterator[type[SlowFile]]:
    usual = apsw.vfs_names()[0]
    disk = SlowDisk(usual)
    yield SlowFile
    SlowFile.seconds = 0.0
    disk.unregister()
    apsw.set_default_vfs(usual)


async def test_fifty_workers_write_to_one_slow_disk(tmp_path: Path, slow_disk: type[SlowFile]) -> None:
    async with Atoll(data=tmp_path, engines=1) as atoll:
        workers = []
        for number in range(WORKERS):
            bindings = [
                {"type": "kv", "name": "KV", "namespace": f"space-{number % 7}"},
                {"type": "queue", "name": "JOBS", "queue": f"queue-{number % 5}"},
            ]
            workers.append(await atoll.deploy(f"writer-{number}", WORKER, bindings=bindings))
        keys = [f"{number}-{call}" for call in range(CALLS) for number in range(WORKERS)]
        slow_disk.seconds, slow_disk.syncs = SYNC_SECONDS, 0
        async with asyncio.timeout(60):
            answers = await asyncio.gather(*(workers[int(key.partition("-")[0])].fetch(f"/?key={key}") for key in keys))
        assert [answer.text for answer in answers] == keys, "no write fails or is lost"
        assert 2 <= slow_disk.syncs < len(keys), "waiting writes share one fsync"
        slow_disk.seconds = 0.0
        queues = [(await atoll.api("GET", f"/api/queues/queue-{number}"))["waiting"] for number in range(5)]
        assert sum(queues) == len(keys)
