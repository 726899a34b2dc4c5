"""Memory of the machine, of our control group and of one process, as the kernel reports it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
ROOT = Path("/")


def available_bytes(root: Path = ROOT) -> int:
    """Free memory: of the machine or of our control group, whichever is less."""
    return min(_of_machine(root), _of_group(root))


def total_bytes(root: Path = ROOT) -> int:
    """All memory: of the machine or of our control group, whichever is less."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    total = int(found[1]) * 1024 if found else 1 << 62
    for folder, limit_file, _, _ in _groups(root):
        limit = _text(folder / limit_file).strip()
        if limit.isdigit():
            total = min(total, int(limit))
    return total


def engine_bytes() -> int:
    """The memory limit of one engine. The rest is for the node and other programs."""
    return total_bytes() // 4 * 3


def resident_bytes(pid: int) -> int:
    """The resident memory of a process; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _of_machine(root: Path) -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 1 << 62


def _of_group(root: Path) -> int:
    """Free memory of our control groups, v2 or v1. Cached files count as free, because the kernel can drop them."""
    return min((_left(*group) for group in _groups(root)), default=1 << 62)


def _groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    """The folders of our control groups, with the names of limit, usage, and cached files in the statistics."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, path = (line + "::").split(":")[:3]
        if kinds == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            base = root / "sys/fs/cgroup/memory"
        else:
            continue
        # In a container the path may be that of the host; the group is then mounted at the top.
        for folder in (base / path.strip("/"), base):
            yield folder, *names


def _left(folder: Path, limit_file: str, usage_file: str, cached: str) -> int:
    limit, usage = _text(folder / limit_file).strip(), _text(folder / usage_file).strip()
    if not limit.isdigit() or not usage.isdigit() or int(limit) >= 1 << 60:  # "max", or its value in v1
        return 1 << 62
    found = re.search(rf"^{cached} (\d+)", _text(folder / "memory.stat"), re.MULTILINE)
    return max(int(limit) - int(usage) + (int(found[1]) if found else 0), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
