"""Packages from npm for tests: the one thing that tests fetch from elsewhere, so it is tried more than once."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from atoll.engine.process.engine_process import find_files

TRIES = 3
SECONDS = 150  # of one try; 10 s are usual
FILES = ("package.json", "package-lock.json", ".npmrc")
# Codes of npm and Node for a registry that is not there, or ails. All others mean that the packages are wrong.
NETWORK = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPIPE|ERR_SOCKET_TIMEOUT"
    r"|E429|E5\d\d|FETCH_ERROR|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|SELF_SIGNED_CERT_IN_CHAIN)\b"
)


class NoRegistry(Exception):
    """The registry could not be reached, or did not answer in time. Tests that need it are skipped."""


class NpmFailed(Exception):
    """npm refused the packages: the project of the test is wrong."""


def install(project: Path, folder: Path, tries: int = TRIES, more: Mapping[str, str] | None = None) -> None:
    """Install the packages of a project into a folder, unless they are there already. One test run at a time does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark, wanted = folder / "installed", (project / "package-lock.json").read_text()
        if mark.exists() and mark.read_text() == wanted:
            return
        mark.unlink(missing_ok=True)
        for name in FILES:
            shutil.copy(project / name, folder)
        for left in reversed(range(tries)):
            try:
                _install_once(folder, more or {})
                break
            except NoRegistry:
                if not left:
                    raise
                shutil.rmtree(folder / "node_modules", ignore_errors=True)  # half of it may be there
        mark.write_text(wanted)


def _install_once(folder: Path, more: Mapping[str, str]) -> None:
    node = find_files().node
    npm = node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    # Not `npm ci`: it refuses a lock file without the packages of other platforms.
    words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
    try:
        ran = subprocess.run(
            [node, "--use-system-ca", npm, *words], cwd=folder, env=os.environ | more, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoRegistry(f"npm install took longer than {SECONDS} s") from None
    if ran.returncode:
        text = ran.stderr.strip()[-1000:]
        if code := NETWORK.search(ran.stderr):
            raise NoRegistry(f"no npm registry can be reached ({code[0]}): {text}")
        raise NpmFailed(text)


def npm_folder(folder: Path) -> Path:
    """A folder with commands `node`, `npm` and `npx`: those of the wheel do not start."""
    node = find_files().node
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("npm", "npx"):
        script = node.parent.parent / f"lib/node_modules/npm/bin/{name}-cli.js"
        (folder / name).write_text(f'#!/bin/sh\nexec "{node}" --use-system-ca "{script}" "$@"\n')
        (folder / name).chmod(0o755)
    if not (folder / "node").exists():
        (folder / "node").symlink_to(node)
    return folder
