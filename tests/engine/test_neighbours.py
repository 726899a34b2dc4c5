"""Other programs on the machine, and what they can do to an engine."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import HELLO, EngineRoom, script

# Another program of the user that engines run as. On every machine some services run as that user.
NEIGHBOUR = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
pid = int(sys.argv[1])
for number, arguments in ((16, (pid, 0, 0)), (0x4206, (pid, 0, 0))):  # PTRACE_ATTACH, PTRACE_SEIZE
    print(libc.ptrace(number, *arguments), ctypes.get_errno())
for name in ("maps", "environ", "mem"):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            print(len(file.read(1)))
    except PermissionError:
        print("refused")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_program_of_the_same_user_cannot_inspect_an_engine(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(sandbox="require")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", NEIGHBOUR, str(room.supervisor.pids[0]), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    refused = f"-1 {errno.EPERM}"
    assert said.decode().splitlines() == [refused, refused, "refused", "refused", "refused"]
    assert (await room.get(script(HELLO))).body == b"hello"
