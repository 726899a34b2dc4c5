"""Packages from PyPI that a test runs in a process of its own: they must not be among the packages of Atoll."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.npm import NoRegistry

SECONDS = 150
NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|SSLError|No matching distribution"
)


def install(requirement: str, folder: Path) -> Path:
    """Install a pinned package with what it needs, unless it is there. Returns the folder for PYTHONPATH."""
    folder.mkdir(parents=True, exist_ok=True)
    packages, mark = folder / "packages", folder / "installed"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists() and mark.read_text() == requirement:
            return packages
        shutil.rmtree(packages, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--only-binary", ":all:"]
        try:
            ran = subprocess.run(
                [*command, "--target", packages, requirement], capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise NoRegistry(f"pip install took longer than {SECONDS} s") from None
        if ran.returncode:
            if NETWORK.search(ran.stderr):
                raise NoRegistry(f"PyPI cannot be reached: {ran.stderr.strip()[-500:]}")
            raise RuntimeError(ran.stderr[-1000:])
        mark.write_text(requirement)
    return packages
