"""The transport of a client connection: when it is read, when it is closed, and its timeouts.

The bytes held for one connection are bounded: see READ_AHEAD. Those of all connections of a tenant are bounded too
(atoll/holdings.py): above that, a connection is read only while it holds little.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

from atoll.front.endpoint import Endpoint
from atoll.front.exchange import WAITING, ClientExchange
from atoll.front.framing import Framing
from atoll.front.http1 import Rejection
from atoll.front.pages import refusal_bytes
from atoll.front.reading import SmallReads
from atoll.front.shared import Shared
from atoll.holdings import SMALL_WINDOW
from atoll.workers import Version

log = logging.getLogger("atoll.front")

# Bytes that may wait for an earlier request, for the client to read its responses, or for a step. Beyond that the
# socket is not read. One read brings up to 256 KB (reading.py), so a connection holds up to READ_AHEAD + 256 KB.
READ_AHEAD: Final = 65536

# With more connections than this, one that sends a body is read once and then waits for its turn. Reading all of them
# in one turn of the event loop would take too long, even with little work for each. Connections beyond these are read
# in small pieces from the start.
CROWD: Final = 64

# Bytes of a next request that go with a connection to another process: one message of the socket between them.
MOST_PASSED_ON: Final = 32768

# Bytes of a head that is refused unread which the access log shows.
MOST_NOTED: Final = 512

# How long a client may still send after we have answered and closed our side. It may not have read the answer yet.
LINGER_SECONDS: Final = 2.0


class ClientLine(Endpoint):
    __slots__ = (
        "buffer", "counted", "exchange", "framing", "is_busy", "is_closing", "is_held", "is_noted", "is_reading",
        "is_waiting", "reads_little", "served", "shared", "unsent",
    )  # fmt: skip

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        # of the connection
        self.shared = shared
        self.framing = Framing()
        self.buffer = bytearray()
        self.unsent = 0  # size of the write buffer when the client last read from it
        self.is_busy = False  # False: idle, the next byte starts a head
        self.is_waiting = False  # for a step in a later turn of the event loop
        self.is_held = False  # reading is paused
        self.is_closing = False  # no further request will be read
        self.reads_little = False  # it is read through a SmallReads
        self.served: Version | None = None  # by whom the last request was; None for the control API
        self.counted = 0  # bytes of a request body that are counted to its tenant
        self.is_noted = False  # in the holdings, as one that cannot wait
        # of the request
        self.exchange: ClientExchange | None = None
        self.is_reading = False  # a body is being received

    def gate(self) -> None:
        """Pause or resume reading, by the room there is for more bytes."""
        exchange = self.exchange
        held = self.count() if self.is_reading or self.counted else 0
        if self.is_closing:
            full = self.is_waiting
        elif self.is_waiting and self.is_reading and self.is_in_a_crowd():
            full = True
        elif exchange is not None and exchange.upload is not None:
            full = exchange.upload.is_full or len(self.buffer) > READ_AHEAD
            if held > SMALL_WINDOW and not full:
                # What it holds leaves as the worker reads, and the credit for it brings us here again.
                full = self.shared.holdings.is_tight(self.tenant)
        else:
            full = len(self.buffer) > READ_AHEAD and (exchange is not None or self.is_write_paused or self.is_waiting)
        if full is self.is_held or self.is_lost or self.transport.is_closing():
            return
        self.is_held = full
        if not self.is_closing:
            self.touched = self.shared.now
        if full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    @property
    def tenant(self) -> str:
        """To whom its bytes are counted. The control API counts as a tenant, and bounds bodies on its own too."""
        return self.served.tenant if self.served is not None else ""

    def count(self) -> int:
        """Count what this connection holds of a request body to its tenant, and return it.

        What waits in its call is counted there: it may stay longer than the connection.
        """
        exchange = self.exchange
        size = held = 0
        if exchange is not None and self.is_reading:
            held = exchange.held() + len(self.buffer)
            size = held - exchange.call.unsent if exchange.call is not None else held
            if size <= SMALL_WINDOW:
                size = 0
        if size != self.counted:
            self.shared.holdings.count(self.tenant, size - self.counted)
            self.counted = size
        return held

    def has_room(self) -> bool:
        exchange = self.exchange
        return exchange is not None and exchange.upload is not None and not self.shared.holdings.is_tight(self.tenant)

    def read_little(self) -> None:
        """From now on, read this connection in small pieces."""
        if not self.reads_little and not self.is_lost:
            self.reads_little = True
            self.transport.set_protocol(cast(asyncio.Protocol, SmallReads(self)))

    def note_unsent(self) -> None:
        """The client does not read its response: note what it holds, and what may still come of it."""
        exchange = self.exchange
        size = self.transport.get_write_buffer_size()
        if exchange is not None and exchange.download is not None:
            size += exchange.download.expected
        self.note_held(size)

    def note_held(self, size: int) -> None:
        """Note what is held of an unread response, or of an unfinished head, which is for no tenant yet."""
        self.is_noted = True
        self.shared.holdings.note(self.tenant, self, size)

    def forget_held(self) -> None:
        self.is_noted = False
        self.shared.holdings.note(self.tenant, self, 0)

    def shed(self) -> None:
        """Cut this connection: its tenant holds too many bytes, and this one holds the most."""
        exchange = self.exchange
        if exchange is not None:
            exchange.abandon()
        what = "responses unread" if exchange is not None or self.is_write_paused else "heads unfinished"
        log.warning("a connection was cut: clients of %s leave too many bytes of %s", self.tenant or "no tenant", what)
        self.cut()

    def is_in_a_crowd(self) -> bool:
        return len(self.shared.connections) > CROWD

    def refuse(self, refusal: Rejection, head: bytes = b"") -> None:
        """Answer an invalid request and end the connection: it is unknown where the next request starts."""
        exchange, self.exchange = self.exchange, None
        if exchange is None and self.is_reading:  # the rest of its body is invalid, and the request has its answer
            self.linger()
            return
        if exchange is not None:
            if exchange.state != WAITING:
                exchange.abandon()
                self.cut()
                return
            exchange.note(refusal.status, 0)
            exchange.abandon()
        elif self.shared.access is not None:
            self.shared.access.add_refused(self.peer, head or bytes(self.buffer[:MOST_NOTED]), refusal.status)
        self.shared.send(self, refusal_bytes(refusal.status, refusal.reason, self.shared.date))
        self.linger()

    def close(self) -> None:
        self.is_closing = self.is_busy = True
        self.buffer.clear()
        self.shared.flush()
        self.transport.close()

    def linger(self) -> None:
        """Close our side only. Closing both with bytes unread makes the kernel reset, and the answer could be lost."""
        if self.is_closing:
            return
        self.is_closing = self.is_busy = True
        self.is_reading = False
        self.touched = self.shared.now
        self.buffer.clear()
        self.gate()
        self.shared.flush()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()  # TLS: the transport sends close_notify, and reads on until it closes

    def cut(self) -> None:
        """Abort the connection, so that the client sees that the response is incomplete."""
        self.is_closing = self.is_busy = True
        self.exchange = None
        self.buffer.clear()
        self.shared.flush()
        self.transport.abort()

    def drain(self) -> None:
        """The server stops: close now if idle, otherwise after the response."""
        if self.exchange is not None:
            self.exchange.is_plain = False
        elif not self.is_busy:
            self.close()

    def leave(self) -> bool:
        """Begin to pass the connection on to the process that takes our place, if no request is under way on it.

        False if it cannot be passed on: TLS has state in this process.
        """
        is_free = self.exchange is None and not self.is_reading and not self.is_waiting
        if not is_free or self.is_lost or self.is_closing or not self.transport.can_write_eof():
            return False
        if len(self.buffer) > MOST_PASSED_ON:
            return False
        if not self.is_held:
            self.transport.pause_reading()
        self.is_held = self.is_busy = True
        self.shared.leaving.append(self)
        return True

    def pass_on(self) -> bool:
        """Pass the connection on once its last response has left. False: not yet."""
        heir = self.shared.heir
        if self.is_lost or self.transport.is_closing():
            return True
        if heir is None or self.transport.get_write_buffer_size():
            return False
        heir(self.transport.get_extra_info("socket").fileno(), bytes(self.buffer))
        self.cut()  # closes our descriptor; the connection lives on in the other one
        return True

    def stay(self) -> None:
        """No other process takes our place after all."""
        if not self.is_lost:
            self.is_held = False
            self.transport.resume_reading()
            self.is_busy = bool(self.buffer)

    def sweep(self, now: float) -> None:
        """Enforce the timeouts. The server calls it a few times a second for every connection."""
        bounds = self.shared.bounds
        idle = now - self.touched
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            if unsent != self.unsent:
                self.unsent = unsent
                self.touched = now
            elif idle > bounds.idle_timeout:
                self.transport.abort()
        elif self.is_closing:
            if idle > LINGER_SECONDS:
                self.transport.abort()
        elif not self.is_busy:
            if idle > bounds.idle_timeout:
                self.close()
        elif self.is_waiting:
            pass  # it waits for us, not for the client
        elif self.exchange is not None and self.exchange.sends_file:
            if idle > bounds.idle_timeout:
                self.transport.abort()
        elif self.is_reading:
            if idle > bounds.body_timeout and not self.is_held:
                self.refuse(Rejection(408, "the body did not arrive in time"))
        elif self.exchange is None and idle > bounds.header_timeout:
            if self.buffer:
                self.refuse(Rejection(408, "the headers did not arrive in time"))
            else:
                self.close()  # it sent only empty lines
