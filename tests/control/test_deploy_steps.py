"""A deploy is all or nothing if the process is killed at any line of the code that stores and switches.

A child process makes the change. It traces which lines of the control plane run, on the event loop and in the writer's
thread, and kills itself at one of them. For each line, the test starts a node on the remaining data. The worker must be
either as before or as after, and the audit log has the line if and only if the change is there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from control_plane import HELLO, Clock, Engines, Node

import atoll
from atoll.config import Settings

FOLDER = Path(atoll.__file__).parent
FILES = ("deploy/deployer", "deploy/deployed", "store/workers", "store/secret_rows", "store/vault")
WATCHED = {str(FOLDER / "api/audit.py"), *(str(FOLDER / f"control/{name}.py") for name in FILES)}
assert all(Path(name).is_file() for name in WATCHED)
Change = Callable[[Node], Awaitable[Any]]

OLD: dict[str, Any] = {
    "name": "w", "script": HELLO + "// old", "env": {"N": "old"}, "routes": ["old.example/*"], "secrets": {"KEY": "old"}
}  # fmt: skip
NEW: dict[str, Any] = {
    "script": HELLO + "// new", "env": {"N": "new"}, "routes": ["new.example/*"], "secrets": {"KEY": "new"}
}  # fmt: skip

CHANGES: dict[str, Change] = {
    "create": lambda node: node.post(**{**NEW, "name": "other"}),
    "update": lambda node: node.put("w", **NEW),
    "secret": lambda node: node.ask("PUT", "/api/workers/w/secrets/KEY", {"value": "new"}),
    "rollback": lambda node: node.ask("POST", "/api/workers/w/rollback", {"force": True}),
    "delete": lambda node: node.ask("DELETE", "/api/workers/w"),
    "rotate": lambda node: node.ask("POST", "/api/secrets/rotate-key"),
}


THOROUGH = {"update", "rotate"}  # every line; most lines of the other changes are also lines of an update


class Steps:
    """The lines of watched files in the order of their first run; ends the process at one of them."""

    def __init__(self, last: str) -> None:
        self.seen: dict[str, None] = {}
        self._last = last

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        return self.line if code.co_filename in WATCHED or code.co_name == "insert_version" else None

    def line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            step = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            if step == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            self.seen[step] = None
        return self.line


async def change_in(folder: Path, change: Change, steps: Steps) -> None:
    node = Node(folder, Settings(), Engines(), Clock())
    await node.database.write(lambda _: sys.settrace(steps.trace))  # in its thread
    sys.settrace(steps.trace)
    answer = await change(node)
    await node.database.write(lambda _: sys.settrace(None))
    sys.settrace(None)
    assert answer.status < 300, answer.content
    await node.close()


def run_child(folder: Path, change: Change, last: str = "") -> tuple[int, list[str]]:
    """(signal, steps) of a process that makes the change and is killed at step `last`."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            steps = Steps(last)
            asyncio.run(change_in(folder, change, steps))
            os.write(writing, " ".join(steps.seen).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0), said.split()


async def state_of(folder: Path) -> dict[str, Any]:
    """Everything a deploy changes, as a node that starts here sees it."""
    node = Node(folder, Settings(), Engines(), Clock())
    try:
        state: dict[str, Any] = {}
        for deployment in node.deployer.all():
            version = deployment.version
            stored = await node.deployer.version(deployment, str(deployment.number))
            history = [each.number for each in node.store.versions(deployment.id)]
            state[deployment.name] = {
                "code": stored.version.modules[0].source, "env": dict(version.env), "routes": deployment.routes,
                "secrets": dict(version.secrets), "number": deployment.number, "history": history,
            }  # fmt: skip
            for host in ("old.example", "new.example"):
                found = node.live(host)
                state[host] = found.env if found is not None else None
        lines = (await node.ask("GET", "/api/audit")).json["audit"]
        state["audit"] = [line["action"] for line in lines]
        orphans = "SELECT count(*) FROM secrets WHERE id NOT IN (SELECT secret_id FROM version_secrets)"
        state["orphans"] = node.database.read(lambda connection: list(connection.execute(orphans)))
        return state
    finally:
        await node.close()


async def prepare(folder: Path) -> None:
    node = Node(folder, Settings(), Engines(), Clock())
    for fields in (OLD, {"env": {"N": "second"}}):
        answer = await (node.post(**fields) if "name" in fields else node.put("w", **fields))
        assert answer.status < 300, answer.content
    await node.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory if possible: the test kills processes and not the machine, so it needs no disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_killed_at_any_line_is_complete_or_absent(folder: Path, name: str) -> None:
    start, at = folder / "start", folder / "at"
    start.mkdir()
    asyncio.run(prepare(start))
    shutil.copytree(start, at)
    old = asyncio.run(state_of(at))
    ended, steps = run_child(at, CHANGES[name])
    assert ended == 0 and len(steps) > 20, "the change itself must work"
    new = asyncio.run(state_of(at))
    assert old != new
    seen: set[bool] = set()
    for step in steps[:: 1 if name in THOROUGH else 4]:
        shutil.rmtree(at)
        shutil.copytree(start, at)
        ended, _ = run_child(at, CHANGES[name], step)
        assert ended == signal.SIGKILL, step
        left = asyncio.run(state_of(at))
        assert left in (old, new), f"killed at {step}"
        seen.add(left == new)
    assert seen == {True, False}, "some kills come before the commit and some after it"
