"""The data folder: made when missing, and held by one Atoll at a time.

Two nodes on one folder would each believe that what they have in memory is what is stored. The lock is flock() on a
file that stays: the kernel lets go of it when the process ends in whatever way, so there is no stale lock to remove.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from atoll.errors import StartError

LOCK_FILE = "lock"


class DataFolder:
    """The folder, locked from construction until close()."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds other people's code: for its owner alone
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(
                f"the data folder {path} cannot be used: {error.strerror}", "choose one you may write to with --data"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._lock)
            raise StartError(
                f"another Atoll (process {holder}) is using the data folder {path}",
                "stop it, or choose another folder with --data",
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Let go. The file stays: removing it would let two later processes hold two different files."""
        os.close(self._lock)
