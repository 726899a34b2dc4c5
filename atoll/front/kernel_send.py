"""A part of a file that the kernel sends to a client (sendfile), past the transport of its connection.

It goes through a second descriptor of the client's socket, once the transport has sent the head of the response. There
must be no TLS in between. The event loop never waits for a disk: bytes that are not in memory are read by a thread
first. Both descriptors are closed at the end, and never while a thread uses them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from atoll.front.endpoint import Endpoint
from atoll.front.shared import Shared
from atoll.warm_files import WARM, is_warm, read_some

STEP: Final = 512 << 10  # bytes that the kernel sends in one turn of the event loop
LONGEST_WAIT: Final = 0.25  # seconds between two looks at a transport that still sends an earlier response


class FileReceiver(Protocol):
    """The exchange whose client gets the file."""

    connection: Endpoint
    shared: Shared
    sends_file: bool
    sent: int

    @property
    def is_streaming(self) -> bool: ...

    def abandon(self) -> None: ...


class KernelSend:
    """Owns the descriptor `file` from the start. `ended` is called once, unless it is cancelled: with None when all
    bytes are sent, or with the error if they cannot be read. A client that is gone cancels its call."""

    __slots__ = (
        "_at", "_end", "_ended", "_exchange", "_file", "_is_busy", "_is_watched", "_loop", "_socket", "_threads",
        "_wait",
    )  # fmt: skip

    def __init__(
        self,
        exchange: FileReceiver,
        file: int,
        span: tuple[int, int],
        threads: ThreadPoolExecutor,
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._exchange = exchange
        self._file = file
        self._at, self._end = span
        self._threads = threads
        self._ended: Callable[[BaseException | None], None] | None = ended  # None: it is over
        self._socket = -1
        self._is_busy = False  # a thread uses the file
        self._is_watched = False
        self._wait = 0.002
        try:
            self._socket = os.dup(exchange.connection.transport.get_extra_info("socket").fileno())
        except OSError as error:  # there are too many open files
            self._loop.call_soon(self._finish, error)
            return
        exchange.sends_file = True
        exchange.shared.flush()
        self._loop.call_soon(self._send)  # the transport writes the head at the end of this turn

    def cancel(self) -> None:
        """Send no more. `ended` is not called."""
        self._ended = None
        self._release()

    def _finish(self, error: BaseException | None) -> None:
        ended, self._ended = self._ended, None
        self._release()
        self._exchange.sends_file = False
        if ended is not None:
            ended(error)

    def _release(self) -> None:
        self._watch(False)
        if self._is_busy:
            return
        for descriptor in (self._file, self._socket):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._socket = -1

    def _send(self) -> None:
        exchange = self._exchange
        if self._ended is None:
            return
        if not exchange.is_streaming:  # it was broken off: the second descriptor must not continue it
            self.cancel()
            return
        if exchange.connection.transport.get_write_buffer_size():
            self._wait = min(2 * self._wait, LONGEST_WAIT)  # a client that is slow to read what came before
            self._loop.call_later(self._wait, self._send)
            return
        count = min(STEP, self._end - self._at)
        if not is_warm(self._file, self._at, count):
            self._is_busy = True
            self._watch(False)
            future = self._loop.run_in_executor(self._threads, read_some, self._file, self._at, WARM)
            future.add_done_callback(self._warmed)
            return
        self._send_warm(count)

    def _warmed(self, future: asyncio.Future[bytes]) -> None:
        self._is_busy = False
        if self._ended is None:
            self._release()
        elif future.cancelled():
            self._finish(OSError("the node stops"))
        elif future.exception() is not None or not future.result():
            self._finish(future.exception() or OSError("it is shorter than it was"))
        else:
            self._send_warm(min(len(future.result()), self._end - self._at))

    def _send_warm(self, count: int) -> None:
        exchange = self._exchange
        try:
            sent = os.sendfile(self._socket, self._file, self._at, count)
        except BlockingIOError:
            self._watch(True)
            return
        except ConnectionError:
            exchange.abandon()  # cancels the call, which cancels this
            self.cancel()
            exchange.connection.cut()
            return
        except OSError as error:
            self._finish(error)
            return
        self._at += sent
        exchange.sent += sent
        exchange.connection.touched = exchange.shared.now
        if not sent:  # the file ends early: the client must see that the response is incomplete
            self._finish(OSError("it is shorter than it was"))
        elif self._at < self._end:
            self._watch(True)
        else:
            self._finish(None)

    def _watch(self, wanted: bool) -> None:
        """Continue when the socket can take more."""
        if wanted is not self._is_watched:
            self._is_watched = wanted
            if wanted:
                self._loop.add_writer(self._socket, self._send)
            else:
                self._loop.remove_writer(self._socket)
