"""Rotates the root key of a folder and is killed before its n-th step: a call to the disk or to the database."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from control_plane import Clock, Engines, Node

from atoll.config import Settings

left = int(sys.argv[2])


def counted(act: Callable[..., Any]) -> Callable[..., Any]:
    def counting(*args: Any, **named: Any) -> Any:
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return act(*args, **named)

    return counting


async def main() -> None:
    node = Node(Path(sys.argv[1]), Settings(), Engines(), Clock())
    for name in ("open", "write", "fsync", "close", "rename", "unlink"):
        setattr(os, name, counted(getattr(os, name)))
    node.database.write = counted(node.database.write)  # type: ignore[method-assign]
    await node.deployer.rotate_key()
    os._exit(0)


asyncio.run(main())
