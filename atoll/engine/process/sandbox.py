"""The sandbox of an engine, seen from outside: which files it may read, which layers hold, whether that is enough.

The engine is not trusted. The launcher reports its layers through a pipe that is closed before node starts, and the
rest is read from the kernel (/proc).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from atoll.engine.process import confine
from atoll.errors import StartError

OFF, REQUIRE = "off", "require"
SECCOMP = "seccomp"
FILTERS = 2  # seccomp filters that an engine installs: an allow list, and calls that kill it
LOADER_CACHE = "/etc/ld.so.cache"
HINT = "docs/concepts/security.md says what each layer needs; --sandbox=try starts without what is missing"


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of an engine's sandbox that hold, and those that do not, with the reason. Both empty: it is off."""

    held: tuple[str, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        if not self.held and not self.missing:
            return "off"
        return ", ".join(self.held) + (f"; missing: {', '.join(self.missing)}" if self.missing else "")


def needed_files(node: Path, *ours: Path) -> tuple[str, ...]:
    """The files that node opens until the engine runs. The loader lists the libraries; node itself is not run."""
    try:
        told = subprocess.run(
            [node], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise StartError(f"the libraries of {node} cannot be listed: {error}", "run `make setup`") from None
    libraries = [word for line in told.splitlines() for word in line.split() if word.startswith("/")]
    files = [*map(os.path.abspath, (node, *ours)), LOADER_CACHE, *libraries]
    return tuple(file for file in dict.fromkeys(files) if os.path.exists(file))


def plan(files: tuple[str, ...], *, data_bytes: int = 0, without: tuple[str, ...] = ()) -> str:
    """The instructions for launch.py."""
    return "\n".join((",".join(without), str(data_bytes), *files))


def read_layers(report: str, pid: int) -> Layers:
    """The layers of an engine that has said HELLO and in which no worker is loaded yet."""
    held: list[str] = []
    missing: list[str] = []
    for line in report.splitlines():
        (held if line.startswith("+") else missing).append(line[1:])
    try:
        facts = _kernel_facts(Path(f"/proc/{pid}/task").iterdir())
        own = _kernel_facts([Path("/proc/self")])
    except OSError as error:
        return Layers(tuple(held), (*missing, f"{SECCOMP}: /proc cannot be read: {error.strerror}"))
    # Every thread has these in addition to the filters of a container. Kernels before 5.9 do not report the number.
    most_of_ours = max(map(int, own["Seccomp_filters"]), default=0)
    counted = all(int(count) >= most_of_ours + FILTERS for count in facts["Seccomp_filters"])
    if facts["Seccomp"] == {"2"} and counted:
        held.append(SECCOMP)
    else:
        missing.append(f"{SECCOMP}: the kernel shows no filter on every thread")
    for name, fact, wanted in (
        (confine.PRIVILEGES, "NoNewPrivs", {"1"}),
        (confine.CAPABILITIES, "CapEff", {"0" * 16}),
        (confine.CAPABILITIES, "CapPrm", {"0" * 16}),
    ):
        if name in held and facts[fact] != wanted:
            held.remove(name)
            missing.append(f"{name}: the kernel shows {fact} {', '.join(sorted(facts[fact]))}")
    return Layers(tuple(held), tuple(missing))


def check(layers: Layers) -> None:
    """For the setting `require`: StartError if a layer is missing."""
    if layers.missing:
        raise StartError(f"the sandbox of the engine is not whole: {'; '.join(layers.missing)}", HINT)


def _kernel_facts(tasks: Iterable[Path]) -> dict[str, set[str]]:
    """Facts about threads from /proc: by name, the values that occur."""
    names = ("Seccomp", "Seccomp_filters", "NoNewPrivs", "CapEff", "CapPrm")
    facts: dict[str, set[str]] = {name: set() for name in names}
    for task in tasks:
        try:
            status = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            continue
        for line in status.splitlines():
            name, _, value = line.partition(":")
            if name in facts:
                facts[name].add(value.strip())
    return facts
