"""A disk that fails in the middle of a lease: no message is lost or left unassigned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.bindings.queue.store import NewMessage, Settlement
from atoll.errors import StorageFailed


class FailingFile(apsw.VFSFile):
    fails = False

    def xSync(self, flags: int) -> None:
        if FailingFile.fails:
            raise apsw.IOError("a test breaks this disk")
        super().xSync(flags)


class FailingDisk(apsw.VFS):
    """It stores what is written but, while it `fails`, reports that fsync failed."""

    def __init__(self, usual: str) -> None:
        super().__init__("failing", usual, makedefault=True)
        self._usual = usual

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return FailingFile(self._usual, name, flags)


@pytest.fixture
def disk() -> Iterator[type[FailingFile]]:
    usual = apsw.vfs_names()[0]
    made = FailingDisk(usual)
    yield FailingFile
    FailingFile.fails = False
    made.unregister()
    apsw.set_default_vfs(usual)


async def test_a_failed_lease_is_undone_and_other_leases_stay(tmp_path: Path, disk: type[FailingFile]) -> None:
    store = SqliteQueues(tmp_path / "queues.db")
    queue = await store.ensure("alice", "jobs")
    await store.send(queue.id, [NewMessage("text", bytes([number]), 0) for number in range(4)])
    [held] = await store.lease(queue.id, 1)
    disk.fails = True
    with pytest.raises(StorageFailed):
        await store.lease(queue.id, 2)
    database = store._database
    await database.let_go()
    disk.fails = False
    await database.take_up()  # SQLite finds the transaction in its log that it had reported as failed
    leased = await store.lease(queue.id, 10)
    assert [message.body for message in leased] == [b"\1", b"\2", b"\3"], (
        "the message that is already leased is not included"
    )
    await store.settle(queue.id, Settlement([held.seq, *(message.seq for message in leased)], [], []))
    assert (await store.depth(queue.id))[:3] == (0, 0, 0)
    await store.close()
