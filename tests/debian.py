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
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    if subprocess.run(install, check=False, capture_output=True, timeout=INSTALL_SECONDS).returncode:
        # A new machine has no package lists, and an old list names files that are gone.
        subprocess.run(["apt-get", "update", "-q"], check=False, capture_output=True, timeout=INSTALL_SECONDS)
        subprocess.run(install, check=False, capture_output=True, timeout=INSTALL_SECONDS)
