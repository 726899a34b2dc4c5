"""Fetches by callbacks, without a task: to a server with an open connection, and to a worker of this node.

The first is for requests that are like an earlier one. The reply has the head of the response, and also the body if it
is small and follows at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from atoll.bindings.base import Later, Reply
from atoll.bindings.fetch.fetching import Fetching
from atoll.bindings.fetch.lane import Lane
from atoll.bindings.fetch.messages import WantedFetch
from atoll.bindings.fetch.stencils import Stencil
from atoll.bindings.services import InnerCall, InnerResponse
from atoll.egress.client import HttpClient
from atoll.egress.exchange import ServerExchange
from atoll.errors import Failure, NetworkError
from atoll.workers import Version

SMALL = 64 << 10  # bytes of a body that is waited for,
SMALL_SECONDS = 0.002  # for this many seconds: servers often send head and body separately

DescribeInner: TypeAlias = Callable[[WantedFetch, Fetching, "InnerResponse | Failure"], Reply]
Describe: TypeAlias = Callable[[bool, Fetching, int, str, bytes], Reply]


class QuickFetch(Later):
    __slots__ = (
        "_client", "_data", "_describe", "_exchange", "_fetching", "_lane", "_number", "_stencil", "_timer", "_version",
    )  # fmt: skip

    def __init__(
        self,
        client: HttpClient,
        describe: Describe,
        version: Version,
        stencil: Stencil,
        data: bytes,
        exchange: ServerExchange,
    ) -> None:
        super().__init__()
        self._client = client
        self._describe = describe
        self._version = version
        self._stencil = stencil
        self._data = data  # the request, in case it must be sent again
        self._exchange = exchange
        self._fetching = Fetching(exchange.where, None)
        self._timer: asyncio.TimerHandle | None = None
        self._fetching.begin(exchange)

    def begin(self, lane: Lane, number: object) -> None:
        self._lane = lane
        self._number = lane.add(number, self._fetching)
        lane.places.take(self._fetching)
        self._exchange.listen(self._on_news)

    def _on_news(self) -> None:
        exchange, fetching = self._exchange, self._fetching
        if fetching.error is not None:
            self._fail(fetching.error)
        elif exchange.error is not None and not exchange.has_head:
            if self._client.may_repeat(exchange, self._stencil.method):
                fetching.task = asyncio.ensure_future(self._repeat())
            else:
                self._client.stats.failures += 1
                self._fail(exchange.error)
        elif exchange.has_ended or exchange.error is not None or not 0 < (exchange.length or 0) <= SMALL:
            self._answer()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SMALL_SECONDS, self._answer)

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        exchange = self._exchange
        exchange.listen(None)
        try:
            reply = self._describe(
                self._stencil.is_ours, self._fetching, exchange.status, exchange.reason, exchange.lines
            )
        except Exception as error:
            self._fail(error)
            return
        if reply.meta["ended"]:
            self._lane.drop(self._number)
        self.settle(reply)

    def _fail(self, error: Exception) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._exchange.listen(None)
        self._lane.drop(self._number)
        self.settle(error)

    async def _repeat(self) -> None:
        """The server had closed the connection: send the request again on another one."""
        fetching, stencil = self._fetching, self._stencil
        try:
            self._exchange = await self._client.repeated(
                self._version, stencil.target, self._data, method=stencil.method
            )
            fetching.begin(self._exchange)
        except asyncio.CancelledError:
            self._fail(fetching.error or NetworkError("the fetch was aborted"))
        except Exception as error:
            self._fail(error)
        else:
            fetching.task = None
            self._answer()


class QuickInner(Later):
    """A request to a worker of this node."""

    __slots__ = ("_call", "_describe", "_fetching", "_lane", "_number", "_wanted")

    def __init__(self, describe: DescribeInner, wanted: WantedFetch, call: InnerCall) -> None:
        super().__init__()
        self._describe = describe
        self._wanted = wanted
        self._call = call
        self._fetching = Fetching(str(wanted.target), None)
        self._fetching.begin(call)

    def begin(self, lane: Lane, number: object, is_connection: bool) -> None:
        self._lane = lane
        self._number = lane.add(number, self._fetching)
        if is_connection:
            lane.places.take(self._fetching)
        if self._call.answer is None:
            self._call.listen(self._on_answer)
        else:  # refused at once; a reply must not come before the op has returned
            asyncio.get_running_loop().call_soon(self._on_answer)

    def _on_answer(self) -> None:
        fetching, answer = self._fetching, self._call.answer
        reply: Reply | Exception
        if fetching.error is not None or answer is None:
            reply = fetching.error or NetworkError("the fetch was aborted")
        else:
            try:
                reply = self._describe(self._wanted, fetching, answer)
            except Exception as error:
                reply = error
        if not isinstance(reply, Reply) or reply.meta["ended"]:
            self._lane.drop(self._number)
        self.settle(reply)
