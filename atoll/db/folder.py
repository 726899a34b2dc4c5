"""The data folder: created if missing, and locked by one Atoll at a time.

Two nodes on one folder would each assume that their memory matches the stored data. The lock is flock() on a file that
stays: the kernel releases it whenever the process ends, so there is no stale lock to remove.

A disk that became read-only can be repaired only when no process has files on it open. Once the folder is unmounted,
which the node sees by the missing lock file, it closes all its files. When the folder is back, the node takes the lock,
opens its databases again and continues without a restart.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
from pathlib import Path
from typing import Protocol

from atoll.db.ahead import refuse_newer_file
from atoll.db.sqlite import databases
from atoll.errors import StartError, StorageFailed

log = logging.getLogger("atoll.db")

LOCK_FILE = "lock"
KEY_FILE = "root-key"  # encrypts the secrets in the main database
WORK_PREFIX = "backup-"  # folders of running backups
# Temporary files and folders, which remain if the node is killed. The leftover of a root key needs more checks before
# it is removed (control/store/vault.py); the cache cleans its own folder.
LEFTOVERS = (f"{WORK_PREFIX}*", "engine-*.tmp", "recent.tmp")
LOOK_SECONDS = 1.0  # seconds between two checks of the folder


def restore_prefix(data: Path) -> str:
    """The folder, beside the data folder, in which a backup is unpacked before it is moved into place."""
    return f".restore-{data.absolute().name}-"


class FolderUser(Protocol):
    """What has something open in the folder, besides the databases."""

    async def let_go(self) -> None: ...

    async def take_up(self) -> None: ...


class DataFolder:
    """The folder, locked from construction until close()."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users: list[FolderUser] = []
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds tenants' code: readable by its owner only
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(
                f"the data folder {path} cannot be used: {error.strerror}", "choose one you may write to with --data"
            ) from None
        self._take_lock()
        try:
            refuse_newer_file(path)  # before anything in it changes
        except StartError:
            self._drop_lock()
            raise
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        self._watching: asyncio.Task[None] | None = None
        self._said = ""  # why it could not be opened again at the last check

    def sweep(self) -> None:
        """Remove what a killed node left behind. Only this process uses the folder, and it has made no files yet."""
        left = [path for pattern in LEFTOVERS for path in self.path.glob(pattern)]
        left += self.path.absolute().parent.glob(f"{restore_prefix(self.path)}*")
        for path in left:
            try:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif not path.name.startswith(WORK_PREFIX):  # a file of that name is a user's backup
                    path.unlink()
                else:
                    continue
                log.info("removed %s, which a node left behind when it was killed", path)
            except OSError as error:
                log.warning("%s, which a node left behind when it was killed, cannot be removed: %s", path, error)

    def watch(self) -> None:
        """Start to watch whether the folder's disk is removed and comes back."""
        self._watching = asyncio.ensure_future(self._watch())

    def close(self) -> None:
        """Release the lock. The file stays: without it, two later processes could lock two different files."""
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
                log.error(
                    "the data folder %s is not available: nothing can be stored or read until it is back", self.path
                )
                await self._let_go()

    async def _let_go(self) -> None:
        for user in self._users():
            await user.let_go()
        self._drop_lock()

    async def _take_up(self) -> None:
        """Open the folder again if it is back. If not, the next check tries again."""
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
            for user in self._users():
                await user.take_up()
            log.warning("the data folder %s is back", self.path)
            self._said = ""
        except (OSError, StartError, StorageFailed) as error:
            self._say(error)
            await self._let_go()

    def _say(self, error: Exception) -> None:
        if str(error) != self._said:  # not at every check
            self._said = str(error)
            log.error("the data folder %s is back but cannot be used: %s", self.path, error)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat((self.path / LOCK_FILE).stat(), os.fstat(self._lock))
        except OSError:
            return False

    def _users(self) -> list[FolderUser]:
        return [*self.users, *(database for database in databases if database.path.is_relative_to(self.path))]
