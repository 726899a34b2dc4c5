"""One Atoll per data folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from atoll.db import folder as folder_module
from atoll.db.folder import LOCK_FILE, DataFolder
from atoll.db.sqlite import Database
from atoll.errors import StartError, StorageFailed
from atoll.handover.channel import Door
from atoll.handover.channel import knock as knocked

HOLD = """
import sys
from pathlib import Path
from atoll.db.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_only_the_owner_has_access_to_the_folder(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / LOCK_FILE).read_text() == str(os.getpid())
    folder.close()
    DataFolder(tmp_path / "a" / "b").close()


def test_a_second_atoll_is_refused_and_the_error_names_the_first(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes) as first:  # type: ignore[call-overload]
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(StartError, match=f"process {first.pid}") as error:
            DataFolder(tmp_path)
        assert "--data" in error.value.hint
        first.kill()
        first.wait()
    DataFolder(tmp_path).close()  # the lock ends with its process, however that ended


def test_an_unusable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used"):
        DataFolder(tmp_path / "file")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (the condition sends no event)
            await asyncio.sleep(0.01)


class Watched:
    """A folder with a database that its node watches, and ways to take it away."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.elsewhere = place.with_name("elsewhere")
        self.folder = DataFolder(place)
        self.database = Database(place / "atoll.db")
        self.folder.watch()

    async def close(self) -> None:
        await self.database.close()
        self.folder.close()

    async def note(self, name: str) -> None:
        await self.database.write(lambda c: c.execute("INSERT INTO tenants VALUES (?, 1, '{}', 'null', '{}')", (name,)))

    def names(self) -> list[object]:
        sql = "SELECT name FROM tenants WHERE created_at = 1 ORDER BY name"
        return [row[0] for row in self.database.read(lambda c: c.execute(sql).fetchall())]

    def is_away(self) -> bool:
        try:
            self.names()
            return False
        except StorageFailed:
            return True

    def open_files(self) -> list[str]:
        links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return [target for target in links if str(self.place.parent) in target]


@pytest.fixture
async def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(folder_module, "LOOK_SECONDS", 0.01)
    made = Watched(tmp_path / "data")
    yield made
    await made.close()


async def test_a_folder_that_disappears_is_released_and_reopened_when_it_returns(watched: Watched) -> None:
    await watched.note("before")
    watched.place.rename(watched.elsewhere)
    await until(watched.is_away)
    await until(lambda: watched.open_files() == [])
    with pytest.raises(StorageFailed, match="not available"):
        await watched.note("meanwhile")
    with pytest.raises(StorageFailed, match="not available"):
        await watched.database.search(lambda c: None)
    assert watched.database.faults >= 3
    watched.elsewhere.rename(watched.place)
    await until(lambda: not watched.is_away())
    await watched.note("behind")
    assert watched.names() == ["before", "behind"]
    assert await watched.database.search(lambda c: c.execute("PRAGMA synchronous").fetchone()) == (2,)
    with pytest.raises(StartError, match="another Atoll"):
        DataFolder(watched.place)


async def test_a_folder_used_by_another_process_meanwhile_is_not_reopened(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.place.rename(watched.elsewhere)
    await until(watched.is_away)
    await until(lambda: watched.open_files() == [])
    (watched.elsewhere / LOCK_FILE).write_text("1")
    watched.elsewhere.rename(watched.place)
    await until(lambda: "another Atoll has used it meanwhile" in caplog.text)
    assert watched.is_away()


async def test_an_empty_folder_or_another_file_is_not_mistaken_for_the_original(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.place.rename(watched.elsewhere)
    await until(watched.is_away)
    await until(lambda: watched.open_files() == [])
    watched.place.mkdir()
    (watched.place / LOCK_FILE).write_text(str(os.getpid()))
    await until(lambda: "cannot be used" in caplog.text)
    assert watched.is_away() and not (watched.place / "atoll.db").exists(), "no new database is created"
    (watched.place / "atoll.db").write_bytes((watched.elsewhere / "atoll.db").read_bytes())
    await until(lambda: "not the file it was" in caplog.text)
    assert watched.is_away()


async def test_a_node_can_stop_while_its_folder_is_missing(watched: Watched) -> None:
    watched.place.rename(watched.elsewhere)
    await until(watched.is_away)
    await watched.close()


async def test_the_door_of_a_node_is_closed_while_the_folder_is_away_and_opens_again(watched: Watched) -> None:
    door = Door(watched.place)
    watched.folder.users.append(door)
    knock = asyncio.ensure_future(door.next())
    await asyncio.sleep(0)
    before = sockets()
    watched.place.rename(watched.elsewhere)
    await until(watched.is_away)
    await until(lambda: len(sockets()) < len(before))
    assert not knock.done()
    watched.elsewhere.rename(watched.place)
    await until(lambda: not watched.is_away())
    guest = knocked(watched.place)
    assert guest is not None
    host = await asyncio.wait_for(knock, 20)
    host.say(say="welcome")
    assert (await asyncio.wait_for(guest.hear(), 20)).fields == {"say": "welcome"}
    for each in (host, guest, door):
        each.close()
    await door.take_up()  # the folder may return later than that
    assert knocked(watched.place) is None


def sockets() -> list[str]:
    links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [target for target in links if target.startswith("socket:")]
