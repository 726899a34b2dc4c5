"""Programs of Debian packages that tests run. Root installs what is missing; other users skip the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest

INSTALL_SECONDS = 600


def require(package: str, *programs: str) -> str:
    """The path of the first program of `programs` that is there. All of them are names of the same program."""
    if (found := _find(programs)) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(package)
        found = _find(programs)
    if found is None:
        pytest.skip(f"needs {programs[0]} (apt install {package})")
    return found


def _find(programs: tuple[str, ...]) -> str | None:
    return next((path for name in programs if (path := shutil.which(name))), None)


@cache  # a package that cannot be installed is tried once
def _install(package: str) -> None:
    install = ("install", "-y", "-q", "--no-install-recommends", package)
    if not _apt_get(*install):
        _apt_get("update", "-q")  # a new machine has no package lists, and an old list names files that are gone
        _apt_get(*install)


def _apt_get(*words: str) -> bool:
    """Whether it worked. Two test processes may install at once: the second waits for the first."""
    command = ["apt-get", "-o", f"DPkg::Lock::Timeout={INSTALL_SECONDS}", *words]
    return subprocess.run(command, check=False, capture_output=True, timeout=2 * INSTALL_SECONDS).returncode == 0
