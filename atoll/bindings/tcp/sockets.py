"""The sockets of one call, by the numbers that the worker gave them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from atoll.bindings.fetch.fetching import Fetching
from atoll.bindings.fetch.lane import Lane, LanePlaces
from atoll.bindings.scope import CallScope
from atoll.bindings.tcp.wanted import WantedSocket
from atoll.egress.tcp import TcpConnection
from atoll.errors import InvalidArgument, QuotaExceeded

MAX_OPEN = 1_000


class TcpSocket:
    """One socket, from the moment that the worker asks for it."""

    def __init__(self, sockets: Sockets, number: int, wanted: WantedSocket) -> None:
        self.wanted = wanted
        self.is_closed = False
        self.is_securing = False
        self.place = Fetching(f"{wanted.host}:{wanted.port}", None)  # among the connections of its request
        self.place.is_socket = True
        self._sockets = sockets
        self._number = number
        self._connection: TcpConnection | None = None

    @property
    def connection(self) -> TcpConnection:
        if self._connection is None:
            raise InvalidArgument("the socket is not connected yet")
        return self._connection

    def begin(self, connection: TcpConnection) -> None:
        self._connection = connection
        self.place.has_head = True
        if self.is_closed:
            connection.close()

    def let_go(self, release: Callable[[], None]) -> Callable[[], None]:
        """What to call when its connection is lost: both of its places are free then."""

        def lost() -> None:
            release()
            self._sockets.places.leave(self.place)

        return lost

    def close(self) -> None:
        """The worker, or the end of its call, closes it."""
        if self.is_closed:
            return
        self.is_closed = True
        task = self.place.task
        if self._connection is not None:
            self._connection.close()
        if self.is_securing and self._connection is not None and not self._connection.is_tls:
            self._connection.abort()
        if self._connection is None and task is not None and task is not asyncio.current_task():
            task.cancel()
        self._sockets.places.leave(self.place)

    def drop(self) -> None:
        """It failed: forget it."""
        self._sockets.forget(self._number)
        if self._connection is not None:
            self._connection.close()
        self._sockets.places.leave(self.place)


class Sockets:
    """The sockets of one call."""

    def __init__(self, scope: CallScope) -> None:
        self._by_number: dict[int, TcpSocket] = {}
        self.places: LanePlaces = scope.local(Lane).places

    def add(self, number: object, wanted: WantedSocket) -> TcpSocket:
        if isinstance(number, bool) or not isinstance(number, int) or number in self._by_number:
            raise InvalidArgument("a socket needs a number of its own")
        if len(self._by_number) >= MAX_OPEN:
            raise QuotaExceeded(f"more than {MAX_OPEN} sockets are open in one request: close some of them")
        socket = self._by_number[number] = TcpSocket(self, number, wanted)
        return socket

    def find(self, number: object) -> TcpSocket:
        found = self._by_number.get(number) if isinstance(number, int) else None
        if found is None:
            raise InvalidArgument("the socket is closed, or it belongs to another request")
        return found

    def forget(self, number: int) -> None:
        self._by_number.pop(number, None)

    def close_one(self, number: object) -> None:
        socket = self._by_number.pop(number, None) if isinstance(number, int) else None
        if socket is not None:
            socket.close()

    def close(self) -> None:
        sockets, self._by_number = self._by_number, {}
        for socket in sockets.values():
            socket.close()
