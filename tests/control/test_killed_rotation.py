"""A rotation of the root key that is killed at any step loses no secret and leaves nothing behind."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control_plane import HELLO

from atoll.control.store.vault import Vault
from atoll.db.folder import KEY_FILE

Start = Callable[..., Any]
CHILD = Path(__file__).parent / "killed_rotation.py"


def rotate(folder: Path, steps: int) -> int:
    """Rotates in another process that is killed after this many steps; returns its exit code."""
    ran = subprocess.run(
        [sys.executable, str(CHILD), str(folder), str(steps)], capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr
    return ran.returncode


async def test_a_kill_at_any_step_of_a_rotation_loses_no_secret(start: Start, tmp_path: Path) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO)
        for name in ("A", "B"):
            await node.ask("PUT", f"/api/workers/hello/secrets/{name}", {"value": f"value of {name}"})
    steps, left_behind = 0, 0
    while rotate(tmp_path, steps) != 0:
        left_behind += (tmp_path / f"{KEY_FILE}.new").exists()
        async with start() as node:
            live = node.live("hello.localhost")
            assert live is not None and live.secrets == {"A": "value of A", "B": "value of B"}
            node.store.sweep_keys()
            assert not (tmp_path / f"{KEY_FILE}.new").exists()
        steps += 1
    assert steps >= 12 and left_behind >= 4, "the steps cover both files that a rotation writes"
    async with start() as node:
        assert await node.deployer.rotate_key()
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"A": "value of A", "B": "value of B"}


async def test_a_leftover_key_that_a_secret_needs_stays(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A crash cannot cause this. Whatever caused it, Atoll never deletes the last copy of a key."""
    async with start() as node:
        await node.post(name="hello", script=HELLO)
        await node.ask("PUT", "/api/workers/hello/secrets/A", {"value": "a"})
        key, left = tmp_path / KEY_FILE, tmp_path / f"{KEY_FILE}.new"
        left.write_text("9:" + key.read_text().partition(":")[2])
        key.rename(tmp_path / "elsewhere")
        node.store.vault = Vault(tmp_path)
        node.store.sweep_keys()
        assert left.exists() and "secrets are sealed with it" in caplog.text
        (tmp_path / "elsewhere").rename(key)
        node.store.vault = Vault(tmp_path)
        with caplog.at_level(logging.INFO):
            node.store.sweep_keys()
        assert not left.exists() and "left behind" in caplog.text
