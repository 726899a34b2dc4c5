"""A file on its way to a caller: the PoolCall of an asset that is not in memory.

To a client without TLS the kernel sends it (kernel_send.py). Every other caller gets it in pieces under credit, like
the body of a worker. Neither way waits for a disk on the event loop: bytes that are not in memory are read by a thread
first. The descriptor is closed when the call ends, for whatever reason, and never while a thread uses it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeAlias

from atoll.asset_files.reading import open_file
from atoll.assets.messages import FileAnswer
from atoll.engine.calls.call import CallListener
from atoll.errors import Failure
from atoll.front.exchange import ClientExchange
from atoll.front.kernel_send import KernelSend
from atoll.warm_files import read_now, read_some
from atoll.wire.generated import CHUNK, WINDOW, ErrorCode

log = logging.getLogger("atoll.front")

MISSING: Final = "an asset of this version cannot be read"


BringPlace: TypeAlias = Callable[[str], Awaitable[None]]  # (place)


def bringing(bring: BringPlace, place: str, told: Callable[[BaseException | None], None]) -> None:
    """Fetch a file, and then tell how that ended: None, or the error."""
    task = asyncio.ensure_future(bring(place))
    task.add_done_callback(lambda done: told(asyncio.CancelledError() if done.cancelled() else done.exception()))


class Answered:
    """The call of a response that was given at once."""

    within: object = None

    @property
    def unsent(self) -> int:
        """Bytes of the request body that wait here."""
        return 0

    def send_body(self, chunk: bytes, ended: bool) -> None: ...

    def grant(self, amount: int) -> None: ...

    def cancel(self) -> None: ...

    def refuse(self, failure: Failure) -> None: ...

    def hear(self, messages: int) -> None: ...


class FileCall(Answered):
    __slots__ = (
        "_at", "_block", "_bring", "_caller", "_credit", "_end", "_file", "_is_busy", "_is_pumping", "_loop", "_place",
        "_sending", "_status", "_threads", "within",
    )  # fmt: skip

    """`bring` fetches the file if it is not on this node; None: it should be here."""

    def __init__(
        self,
        threads: ThreadPoolExecutor,
        caller: CallListener,
        place: str,
        found: FileAnswer,
        block: bytes,
        bring: BringPlace | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = threads
        self._caller: CallListener | None = caller  # None: the call is over
        self._place = place
        self._bring = bring
        self._status = found.status
        self._block = block
        self._at, self._end = found.start, found.end
        self._credit = WINDOW
        self._file = -1
        self._is_busy = False  # a thread uses the descriptor
        self._is_pumping = False
        self._sending: KernelSend | None = None  # has the descriptor
        self.within: object = None

    def begin(self) -> None:
        self._is_busy = True
        self._loop.run_in_executor(self._threads, open_file, self._place).add_done_callback(self._opened)

    # The Call side

    def grant(self, amount: int) -> None:
        self._credit += amount
        if not self._is_pumping and not self._is_busy and self._sending is None:
            self._pump()

    def cancel(self) -> None:
        self._caller = None
        self._release()

    def refuse(self, failure: Failure) -> None:
        self.cancel()

    # The file

    def _opened(self, future: asyncio.Future[int]) -> None:
        self._is_busy = False
        error = None if future.cancelled() else future.exception()
        if isinstance(error, FileNotFoundError) and self._bring is not None and self._caller is not None:
            bring, self._bring = self._bring, None
            bringing(bring, self._place, self._brought)
            return
        if future.cancelled() or error is not None:
            self._fail(error)
            return
        self._file = future.result()
        caller = self._caller
        if caller is None:
            self._release()
            return
        if os.fstat(self._file).st_size < self._end:
            self._fail(OSError("it is shorter than it was"))
            return
        length = b"content-length: %d\r\n" % (self._end - self._at)
        caller.on_response(self._status, length + self._block, b"", False)
        if self._caller is None:
            return
        if isinstance(caller, ClientExchange) and caller.takes_file(self._end - self._at):
            file, self._file = self._file, -1
            span = (self._at, self._end)
            self._sending = caller.send_file(file, span, self._threads, partial(self._sent, caller))
        else:
            self._pump()

    def _brought(self, error: BaseException | None) -> None:
        """The file is here now, unless there is an error."""
        if error is not None:
            self._fail(error)
        elif self._caller is not None:
            self.begin()

    def _fail(self, error: BaseException | None) -> None:
        log.error("the asset %s cannot be read: %s", self._place, error)
        caller, self._caller = self._caller, None
        self._release()
        if caller is not None:
            caller.on_failure(Failure(ErrorCode.STORAGE, MISSING))

    def _release(self) -> None:
        """Close the descriptor of a call that is over."""
        if self._sending is not None:
            self._sending.cancel()
        if self._file >= 0 and not self._is_busy:
            os.close(self._file)
            self._file = -1

    # In pieces

    def _pump(self) -> None:
        """Send what credit allows."""
        self._is_pumping = True
        try:
            while self._caller is not None and self._credit > 0 and self._at < self._end:
                size = min(CHUNK, self._credit, self._end - self._at)
                piece = read_now(self._file, self._at, size)
                if piece is None:
                    self._is_busy = True
                    future = self._loop.run_in_executor(self._threads, read_some, self._file, self._at, size)
                    future.add_done_callback(self._read)
                    return
                self._pass_on(piece)
        except OSError as error:
            self._fail(error)
        finally:
            self._is_pumping = False

    def _read(self, future: asyncio.Future[bytes]) -> None:
        self._is_busy = False
        if self._caller is None or future.cancelled():
            self._release()
        elif (error := future.exception()) is not None:
            self._fail(error)
        else:
            self._is_pumping = True  # the reader may grant credit at once
            self._pass_on(future.result())
            self._pump()

    def _pass_on(self, piece: bytes) -> None:
        caller = self._caller
        if caller is None:
            return
        if not piece:
            self._fail(OSError("it is shorter than it was"))
            return
        self._at += len(piece)
        self._credit -= len(piece)
        is_last = self._at >= self._end
        if is_last:
            self._caller = None
            self._release()
        caller.on_body(piece, is_last)

    # By the kernel

    def _sent(self, exchange: ClientExchange, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
            return
        self._caller = None
        exchange.sent_past()


DONE: Final = Answered()
