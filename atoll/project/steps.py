"""Programs that a build waits for: the project's own build step, npm. `abandon` stops them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from atoll.project.model import ProjectError

GRACE_SECONDS = 2


class Steps:
    """Runs one program at a time in a thread. `abandon` is called from another thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._unwanted = False

    def run(
        self, command: str | list[str], folder: Path, seconds: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program; a string is a shell command. Raises TimeoutExpired, and ProjectError if it was abandoned."""
        with subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is handled by this process
        ) as process:
            self._process = process
            try:
                if self._unwanted:  # since just now
                    raise ProjectError("the build was abandoned")
                said, complaints = process.communicate(timeout=seconds)
            except BaseException:
                _signal_all(process, signal.SIGKILL)
                raise
            finally:
                self._process = None
        if self._unwanted:
            raise ProjectError("the build was abandoned")
        return subprocess.CompletedProcess(command, process.returncode, said, complaints)

    def abandon(self) -> None:
        """Stop the program, and refuse to run others. Blocks until it has ended."""
        self._unwanted = True
        process = self._process
        if process is None:
            return
        _signal_all(process, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        _signal_all(process, signal.SIGKILL)


def _signal_all(process: subprocess.Popen[str], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except OSError:  # all of it has ended
        pass
