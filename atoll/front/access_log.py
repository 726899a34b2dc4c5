"""The access log: a line for each request, in a file that is rotated, or on standard output.

The event loop notes requests (access.py). Twice a second it hands the notes to a thread that makes lines of them and
writes them, in steps between which the event loop runs. There is one batch with the thread at a time. While a disk or
a pipe is slow, notes wait up to a bound, and further requests are counted as dropped and told in the node's log.

The file may be moved or deleted at any time: it is opened again when its path leads elsewhere. So two processes of a
node (`--replace`) can share it, and logrotate needs no signal.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import threading
import time
from pathlib import Path
from queue import SimpleQueue

from atoll.config import Settings
from atoll.errors import StartError
from atoll.front.access import AccessNotes, Note
from atoll.front.access_lines import Lines
from atoll.pauses import with_pauses

log = logging.getLogger("atoll.access")

STDOUT = "stdout"
FLUSH_SECONDS = 0.5
CLOSE_SECONDS = 5.0
STEP_LINES = 1_000  # in one write
WARN_SECONDS = 60.0
MODE = 0o640


class LogFile:
    """Where lines go. Used by one thread."""

    def __init__(self, path: str, most: int, kept: int) -> None:
        self._path = None if path == STDOUT else Path(path).absolute()
        self._most = most  # bytes of a file; 0: no bound
        self._kept = kept  # older files
        self._file = 1
        self._open()

    def _open(self) -> None:
        if self._path is not None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)

    def close(self) -> None:
        if self._path is not None and self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, data: bytes) -> None:
        """Raises OSError."""
        if self._path is not None:
            self._follow(len(data))
        while data:
            data = data[os.write(self._file, data) :]

    def _follow(self, more: int) -> None:
        """Open the file again if it was moved, and rotate it if it is full."""
        assert self._path is not None
        if self._file < 0 or not self._is_at_path():
            self.close()
            self._open()
        elif self._most and (size := os.fstat(self._file).st_size) > 0 and size + more > self._most:
            fcntl.flock(self._file, fcntl.LOCK_EX)  # another process of this node may rotate too
            if self._is_at_path():
                self._rotate(self._path)
            self.close()
            self._open()

    def _is_at_path(self) -> bool:
        assert self._path is not None
        try:
            there = self._path.stat()
        except OSError:
            return False
        here = os.fstat(self._file)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _rotate(self, path: Path) -> None:
        """access.log -> access.log.1 -> access.log.2 … The oldest is deleted."""
        older = [path.with_name(f"{path.name}.{number}") for number in range(1, self._kept + 1)]
        if not older:
            path.unlink(missing_ok=True)
            return
        for newer, old in reversed(list(zip([path, *older], older, strict=False))):
            if newer.exists():
                newer.replace(old)


class AccessLog:
    """Made on the event loop. The front notes requests in `notes`; `close` writes what is left."""

    def __init__(self, settings: Settings) -> None:
        """Raises StartError if the file cannot be opened."""
        try:
            self._file = LogFile(settings.access_log, settings.access_log_bytes, settings.access_log_files)
        except OSError as error:
            why = error.strerror or error
            hint = "name a file in a folder that exists and that this user may write, or `stdout`"
            raise StartError(f"access_log {settings.access_log!r} cannot be opened: {why}", hint) from None
        self._lines = lines = Lines()
        self._line = lines.json if settings.access_log_format == "json" else lines.combined
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_writing = False  # the thread has a batch
        self._told_drops = 0
        self._next_warning = 0.0
        self.notes = AccessNotes(settings.access_log_share, self._set_timer)
        self._lost = 0  # lines that could not be written
        self._batches: SimpleQueue[list[Note] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="access log", daemon=True)  # a pipe may block for ever
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Requests of the sample that have no line."""
        return self.notes.dropped + self._lost

    def reopen(self) -> None:
        """Open the file again now, not only with the next line."""
        if not self._is_writing:
            self._is_writing = True
            self._batches.put(self.notes.take())

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._batches.put(self.notes.take())
        self._batches.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
        self._warn()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._is_writing:
            self._set_timer()
        else:
            self._is_writing = True
            self._batches.put(self.notes.take())
        if self.dropped > self._told_drops and self._loop.time() >= self._next_warning:
            self._warn()

    def _warn(self) -> None:
        if lost := self.dropped - self._told_drops:
            self._told_drops += lost
            self._next_warning = self._loop.time() + WARN_SECONDS
            log.warning("%d requests have no line in the access log: it is written too slowly, or not at all", lost)

    # In the thread

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            self._write(batch)
            try:
                self._loop.call_soon_threadsafe(self._written)
            except RuntimeError:  # the loop is closed
                return
        self._file.close()

    def _written(self) -> None:
        self._is_writing = False

    def _write(self, batch: list[Note]) -> None:
        lines: list[bytes] = []
        self._lines.set_clock()
        for note in with_pauses(batch):
            lines.append(self._line(note))
            if len(lines) >= STEP_LINES:
                self._put(lines)
                lines = []
        self._put(lines)

    def _put(self, lines: list[bytes]) -> None:
        try:
            self._file.write(b"".join(lines))
        except OSError as error:
            self._lost += len(lines)
            log.error("the access log cannot be written: %s", error.strerror or error)
            time.sleep(FLUSH_SECONDS)  # a full disk: do not try for each thousand lines


def access_log_of(settings: Settings) -> AccessLog | None:
    """The access log that the settings name, if any. Raises StartError."""
    return AccessLog(settings) if settings.access_log else None
