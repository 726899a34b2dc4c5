"""How much memory there is, as the kernel tells it: of the machine, of our control group, of one process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
ROOT = Path("/")


def available_bytes(root: Path = ROOT) -> int:
    """What may still be used before something is killed: the least that the machine and our control group have left."""
    return min(_of_machine(root), _of_group(root))


def total_bytes(root: Path = ROOT) -> int:
    """What there is in all: the least that the machine has and our control group may use."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    total = int(found[1]) * 1024 if found else 1 << 62
    for folder, limit_file, _, _ in _groups(root):
        limit = _text(folder / limit_file).strip()
        if limit.isdigit():
            total = min(total, int(limit))
    return total


def engine_bytes() -> int:
    """The most one engine may use: what is left keeps the node and its neighbours alive."""
    return total_bytes() // 4 * 3


def resident_bytes(pid: int) -> int:
    """0 for a process that is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _of_machine(root: Path) -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 1 << 62


def _of_group(root: Path) -> int:
    """Left in the control groups we are in, v2 or v1. Cached files count as free: they go when room is needed."""
    return min((_left(*group) for group in _groups(root)), default=1 << 62)


def _groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    """The folders of our control groups, with what is in them: limit, usage, and cached files in its statistics."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, path = (line + "::").split(":")[:3]
        if kinds == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            base = root / "sys/fs/cgroup/memory"
        else:
            continue
        # In a container the path may be one of the host: then the group is mounted at the top.
        for folder in (base / path.strip("/"), base):
            yield folder, *names


def _left(folder: Path, limit_file: str, usage_file: str, cached: str) -> int:
    limit, usage = _text(folder / limit_file).strip(), _text(folder / usage_file).strip()
    if not limit.isdigit() or not usage.isdigit() or int(limit) >= 1 << 60:  # "max", or v1's way to say so
        return 1 << 62
    found = re.search(rf"^{cached} (\d+)", _text(folder / "memory.stat"), re.MULTILINE)
    return max(int(limit) - int(usage) + (int(found[1]) if found else 0), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
