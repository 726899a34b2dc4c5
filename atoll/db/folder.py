"""The data folder: made when missing, and held by one Atoll at a time.

Two nodes on one folder would each believe that what they have in memory is what is stored. The lock is flock() on a
file that stays: the kernel lets go of it when the process ends in whatever way, so there is no stale lock to remove.

A disk that turned read-only can be repaired only when nobody has anything on it open. Once its folder is unmounted,
which the lock tells by not being where it was, a node lets go of all of it; when the folder is back, the node takes
the lock and its databases up again and goes on, without a restart.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from pathlib import Path

from atoll.db.sqlite import Database, databases
from atoll.errors import StartError, StorageFailed

log = logging.getLogger("atoll.db")

LOCK_FILE = "lock"
KEY_FILE = "root-key"  # what seals the secrets in the main database
LOOK_SECONDS = 1.0  # between two looks whether the folder is where it was


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
        self._take_lock()
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        self._watching: asyncio.Task[None] | None = None
        self._said = ""  # why it could not be taken up at the last look

    def watch(self) -> None:
        """From now on follow the folder when its disk is taken away and comes back."""
        self._watching = asyncio.ensure_future(self._watch())

    def close(self) -> None:
        """Let go. The file stays: removing it would let two later processes hold two different files."""
        if self._watching is not None:
            self._watching.cancel()
        self._drop_lock()

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
            self._drop_lock()
            raise StartError(
                f"another Atoll (process {holder}) is using the data folder {self.path}",
                "stop it, or choose another folder with --data",
            ) from None

    def _drop_lock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._lock < 0:
                await self._take_up()
            elif not self._is_there():
                log.error("the data folder %s is away: nothing can be stored or read until it is back", self.path)
                await self._let_go()

    async def _let_go(self) -> None:
        for database in self._databases():
            await database.let_go()
        self._drop_lock()

    async def _take_up(self) -> None:
        """Go on with the folder if it is back. If not, the next look tries again."""
        try:
            self._lock = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            self._say(error)
            return
        try:
            holder = os.pread(self._lock, 32, 0)
            self._take_lock()  # first: another node may have it by now
            if holder != str(os.getpid()).encode():
                raise StorageFailed("another Atoll has used it meanwhile: start this one again")
            for database in self._databases():
                await database.take_up()
            log.warning("the data folder %s is back", self.path)
            self._said = ""
        except (OSError, StartError, StorageFailed) as error:
            self._say(error)
            await self._let_go()

    def _say(self, error: Exception) -> None:
        if str(error) != self._said:  # not again at every look
            self._said = str(error)
            log.error("the data folder %s is back but cannot be used: %s", self.path, error)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat((self.path / LOCK_FILE).stat(), os.fstat(self._lock))
        except OSError:
            return False

    def _databases(self) -> list[Database]:
        return [database for database in databases if database.path.is_relative_to(self.path)]
