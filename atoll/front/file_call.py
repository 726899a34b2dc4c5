"""A file on its way to a caller: the PoolCall of an asset that is not in memory.

To a client without TLS the kernel sends it (sendfile) through a second descriptor of its socket, once the transport has
sent the head of the response. Every other caller gets it in pieces under credit, like the body of a worker. Neither way
waits for a disk on the event loop: bytes that are not in memory are read by a thread first. The descriptors are closed
when the call ends, for whatever reason, and never while a thread uses them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final, cast

from atoll.asset_files.reading import WARM, is_warm, open_file, read_now, read_some
from atoll.assets.messages import FileAnswer
from atoll.engine.calls.call import CallListener
from atoll.errors import Failure
from atoll.front.exchange import STREAMING, ClientExchange
from atoll.front.line import ClientLine
from atoll.wire.generated import CHUNK, WINDOW, ErrorCode

log = logging.getLogger("atoll.front")

STEP: Final = 512 << 10  # bytes that the kernel sends in one turn of the event loop
LONGEST_WAIT: Final = 0.25  # seconds between two looks at a transport that still sends an earlier response
MISSING: Final = "an asset of this version cannot be read"


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
        "_at", "_block", "_caller", "_credit", "_end", "_exchange", "_file", "_is_busy", "_is_pumping", "_is_watched",
        "_loop", "_place", "_socket", "_status", "_threads", "_wait", "within",
    )  # fmt: skip

    def __init__(
        self, threads: ThreadPoolExecutor, caller: CallListener, place: str, found: FileAnswer, block: bytes
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = threads
        self._caller: CallListener | None = caller  # None: the call is over
        self._place = place
        self._status = found.status
        self._block = block
        self._at, self._end = found.start, found.end
        self._credit = WINDOW
        self._file = -1
        self._is_busy = False  # a thread uses the descriptor
        self._is_pumping = False
        # of a file that the kernel sends
        self._exchange: ClientExchange | None = None
        self._socket = -1
        self._is_watched = False
        self._wait = 0.002
        self.within: object = None

    def begin(self) -> None:
        self._is_busy = True
        self._loop.run_in_executor(self._threads, open_file, self._place).add_done_callback(self._opened)

    # The Call side

    def grant(self, amount: int) -> None:
        self._credit += amount
        if not self._is_pumping and not self._is_busy and self._exchange is None:
            self._pump()

    def cancel(self) -> None:
        self._caller = None
        self._release()

    def refuse(self, failure: Failure) -> None:
        self.cancel()

    # The file

    def _opened(self, future: asyncio.Future[int]) -> None:
        self._is_busy = False
        if future.cancelled() or future.exception() is not None:
            self._fail(None if future.cancelled() else future.exception())
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
        if isinstance(caller, ClientExchange) and self._can_send(caller):
            self._loop.call_soon(self._send)  # the transport writes the head at the end of this turn
        else:
            self._pump()

    def _fail(self, error: BaseException | None) -> None:
        log.error("the asset %s cannot be read: %s", self._place, error)
        caller, self._caller = self._caller, None
        self._release()
        if caller is not None:
            caller.on_failure(Failure(ErrorCode.STORAGE, MISSING))

    def _release(self) -> None:
        """Close the descriptors of a call that is over."""
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_writer(self._socket)
        if self._is_busy:
            return
        for descriptor in (self._file, self._socket):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._socket = -1

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

    def _can_send(self, exchange: ClientExchange) -> bool:
        """Prepare to send past the transport; False if there is TLS in between."""
        transport = exchange.connection.transport
        socket = transport.get_extra_info("socket")
        if exchange.state != STREAMING or transport.get_extra_info("sslcontext") is not None or socket is None:
            return False
        self._socket = os.dup(socket.fileno())
        self._exchange = exchange
        exchange.sends_file = True
        exchange.shared.flush()
        return True

    def _send(self) -> None:
        exchange = self._exchange
        if self._caller is None or exchange is None:
            self._release()
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
        self._send_warm(exchange, count)

    def _warmed(self, future: asyncio.Future[bytes]) -> None:
        self._is_busy = False
        if self._caller is None or self._exchange is None:
            self._release()
        elif future.cancelled() or future.exception() is not None or not future.result():
            self._fail(None if future.cancelled() else future.exception() or OSError("it is shorter than it was"))
        else:
            self._send_warm(self._exchange, min(len(future.result()), self._end - self._at))

    def _send_warm(self, exchange: ClientExchange, count: int) -> None:
        try:
            sent = os.sendfile(self._socket, self._file, self._at, count)
        except BlockingIOError:
            self._watch(True)
            return
        except OSError as error:
            if not isinstance(error, ConnectionError):
                log.error("the asset %s cannot be sent: %s", self._place, error)
            exchange.connection.cut()
            self.cancel()
            return
        self._at += sent
        cast(ClientLine, exchange.connection).touched = exchange.shared.now
        if not sent:  # the file ends early: the client must see that the response is incomplete
            self._fail(OSError("it is shorter than it was"))
        elif self._at < self._end:
            self._watch(True)
        else:
            self._caller = None
            self._release()
            exchange.sent_past()

    def _watch(self, wanted: bool) -> None:
        """Continue when the socket can take more."""
        if wanted is not self._is_watched:
            self._is_watched = wanted
            if wanted:
                self._loop.add_writer(self._socket, self._send)
            else:
                self._loop.remove_writer(self._socket)


DONE: Final = Answered()
