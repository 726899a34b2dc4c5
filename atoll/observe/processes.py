"""Memory and CPU time of processes, from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class ProcessUse(NamedTuple):
    resident_bytes: int
    cpu_seconds: float


def use_of(pid: int) -> ProcessUse | None:
    """None for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the fields after the name, which may contain anything
    return ProcessUse(int(fields[21]) * PAGE, (int(fields[11]) + int(fields[12])) / TICKS)


def uses_of(pids: dict[str, int]) -> dict[str, ProcessUse]:
    """Usage by name, for processes that still run."""
    return {name: use for name, pid in pids.items() if (use := use_of(pid)) is not None}
