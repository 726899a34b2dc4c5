"""What of this machine harms a node: too little memory, a wrong clock, a full volume. Said at start and by doctor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import atoll
from atoll.engine.process.memory import ROOT, total_bytes

MB = 1 << 20
LEAST_MEMORY_MB = 512  # 200 for the node and its engines, and some workers
LEAST_DISK_MB = 1_000
LATE_SECONDS = 3_600  # files may be a little ahead: they were copied from another machine


class MachineProblem(NamedTuple):
    text: str
    hint: str


def machine_problems(data: Path, *, root: Path = ROOT, now: float | None = None) -> Iterator[MachineProblem]:
    """`data` is the data folder; it may not exist yet."""
    total = total_bytes(root) // MB
    if total < LEAST_MEMORY_MB:
        yield MachineProblem(
            f"this machine or its control group has {total} MB of memory, and a node needs {LEAST_MEMORY_MB} MB:"
            " engines will be ended",
            "raise its limit (MemoryMax= of systemd, NODE_MEMORY of Compose, resources.limits of Kubernetes)",
        )
    now = time.time() if now is None else now
    newest, which = _newest(data)
    if newest > now + LATE_SECONDS:
        yield MachineProblem(
            f"the clock of this machine says {_day(now)}, but {which} is of {_day(newest)}: certificates, tokens and"
            " crons depend on the clock",
            "set the clock: timedatectl set-ntp true",
        )
    folder = next(path for path in (data.absolute(), *data.absolute().parents) if path.exists())
    try:
        found = os.statvfs(folder)
    except OSError:
        return  # opening the folder says more
    free = found.f_bavail * found.f_frsize // MB
    if free < LEAST_DISK_MB:
        yield MachineProblem(
            f"the volume of {data} has {free} MB left: writes will fail with 507 when it is full",
            "free some space, grow the volume, or name another folder with --data",
        )


def _newest(data: Path) -> tuple[float, str]:
    """The last change of Atoll's own files or of the data folder, and of which file."""
    found = [Path(atoll.__file__), *(data.glob("*.db") if data.is_dir() else ())]
    times = []
    for path in found:
        try:
            times.append((path.stat().st_mtime, str(path)))
        except OSError:
            continue
    return max(times, default=(0.0, ""))


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
