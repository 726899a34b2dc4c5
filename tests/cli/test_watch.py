"""Which file changes make `atoll dev` build again. The kernel reports them: real folders, no mocks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from atoll.cli.dev.watch import IGNORED, MOST_FOLDERS, Reason, Watcher, folders_of, is_source
from atoll.project.model import BuildOptions, Project

SECONDS = 30


class Watched:
    """An active watcher and its reports."""

    def __init__(self, project: Project) -> None:
        self.said: list[str] = []
        self.watcher = Watcher(project, self.said.append)
        self._reasons = self.watcher.reasons()

    async def reason(self) -> Reason:
        return await asyncio.wait_for(anext(self._reasons), SECONDS)

    async def wait_for(self, reason: Reason) -> None:
        """Waits for a reason that nothing else causes: one save may be reported in two parts."""
        while await self.reason() != reason:
            pass


@asynccontextmanager
async def watched(project: Project, *inputs: Path) -> AsyncIterator[Watched]:
    room = Watched(project)
    room.watcher.watch(project, inputs)
    begun = threading.Event()

    def nothing_is_stale() -> None:
        begun.set()

    room.watcher.start(nothing_is_stale)
    assert await asyncio.to_thread(begun.wait, SECONDS)
    try:
        yield room
    finally:
        await room.watcher.close()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "build" / "shop"  # a name that is ignored inside a project, but not above it
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "node_modules" / "hono").mkdir(parents=True)
    (folder / "src" / "index.ts").write_text("one")
    (folder / "atoll.toml").write_text("")
    return Project("shop", folder, folder / "src" / "index.ts")


async def test_a_save_is_reported_at_any_depth_and_a_config_by_name(project: Project) -> None:
    async with watched(project) as room:
        (project.folder / "src" / "deep" / "part.ts").write_text("two")
        assert await room.reason() == Reason.SOURCES
        (project.folder / "atoll.toml").write_text('name = "x"')
        await room.wait_for(Reason.CONFIG)


async def test_files_written_by_tools_are_not_reported(project: Project) -> None:
    async with watched(project) as room:
        (project.folder / "node_modules" / "hono" / "package.json").write_text(
            "{}"
        )  # elsewhere this file would be a config
        (project.folder / ".atoll").mkdir()
        (project.folder / ".atoll" / "package.json").write_text("{}")
        (project.folder / "src" / "index.ts").write_text("two")
        assert await room.reason() == Reason.SOURCES
    assert not any(map(is_source, ("/p/.index.ts.swp", "/p/dev.log", "/p/index.js.map", "/p/index.ts~", "/p/.atoll")))


async def test_a_new_folder_is_watched_with_its_contents(project: Project) -> None:
    async with watched(project) as room:
        (project.folder / "src" / "new").mkdir()
        assert await room.reason() == Reason.SOURCES
        (project.folder / "src" / "new" / "package.json").write_text("{}")
        await room.wait_for(Reason.CONFIG)


async def test_a_folder_that_is_deleted_and_recreated_is_watched_again(project: Project) -> None:
    """As `git checkout` of another branch does."""
    async with watched(project) as room:
        (project.folder / "src" / "deep").rmdir()
        assert await room.reason() == Reason.SOURCES
        (project.folder / "src" / "deep").mkdir()
        assert await room.reason() == Reason.SOURCES
        (project.folder / "src" / "deep" / "package.json").write_text("{}")
        await room.wait_for(Reason.CONFIG)


async def test_sources_outside_the_project_are_watched(project: Project, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "lib.ts").write_text("one")
    async with watched(project, shared / "lib.ts") as room:
        (shared / "lib.ts").write_text("two")
        assert await room.reason() == Reason.SOURCES


async def test_a_script_in_an_ignored_folder_is_watched_unless_a_command_writes_it(project: Project) -> None:
    """Otherwise the command, whose output changes, would run forever."""
    made = project.folder / "dist" / "index.js"
    made.parent.mkdir()
    made.write_text("one")
    async with watched(project, made) as room:
        (made.parent / "package.json").write_text("{}")
        await room.wait_for(Reason.CONFIG)
    project.build = BuildOptions(command="make")
    async with watched(project, made) as room:
        (made.parent / "package.json").write_text("{ }")
        (project.folder / "src" / "index.ts").write_text("two")
        assert await room.reason() == Reason.SOURCES


async def test_changes_before_the_watch_started_are_checked_once(project: Project) -> None:
    room = Watched(project)
    room.watcher.start(lambda: Reason.CONFIG)
    assert await room.reason() == Reason.CONFIG
    await room.watcher.close()


def test_watching_a_home_folder_is_bounded(tmp_path: Path) -> None:
    for n in range(30):
        for m in range(MOST_FOLDERS // 25):
            (tmp_path / str(n) / str(m)).mkdir(parents=True)
    found = folders_of([tmp_path])
    assert len(found) == MOST_FOLDERS
    assert set(found[:31]) == {tmp_path, *(tmp_path / str(n) for n in range(30))}  # the nearest first


def test_folders_of_tools_are_not_scanned(project: Project) -> None:
    names = {path.name for path in folders_of([project.folder])}
    assert names == {"shop", "src", "deep"} and not names & IGNORED


# Two folders, and a kernel that allows only one watch. Times are far apart, because polling has a resolution of
# seconds.
WITHOUT_THE_KERNEL = """
import asyncio, os, sys, threading
from pathlib import Path
from atoll.cli.dev.watch import Watcher
from atoll.project.model import Project

async def main(folder: Path) -> None:
    watcher, begun = Watcher(Project("x", folder, folder / "src/index.ts"), print), threading.Event()
    watcher.start(begun.set)
    assert await asyncio.to_thread(begun.wait, 30)
    os.utime(folder / "src/index.ts", (2_000_000_000, 2_000_000_000))
    print(await asyncio.wait_for(anext(watcher.reasons()), 30))
    await watcher.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_without_kernel_watches_files_are_polled(project: Project) -> None:
    limited = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    bound = "echo 1 > /proc/sys/user/max_inotify_watches"
    if subprocess.run([*limited, bound], capture_output=True, check=False).returncode:
        pytest.skip("this kernel lets us make no user namespace with a bound of its own")
    program = [sys.executable, "-c", WITHOUT_THE_KERNEL, str(project.folder)]
    ran = subprocess.run(
        [*limited, f'{bound} && exec "$@"', "sh", *program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout.startswith("the system does not report changes (OS file watch limit reached.)"), ran.stderr
    assert ran.stdout.endswith(f"{int(Reason.SOURCES)}\n"), ran.stdout
