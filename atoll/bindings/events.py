"""How a binding runs an event of a worker: a call without a client. engine/calls/events.py implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from atoll.errors import Failure
from atoll.workers import Version

T = TypeVar("T")


class EventKind(NamedTuple):
    """An event that a binding delivers. Its JavaScript half defines one of the same name: `defineEvent("queue", …)`."""

    name: str  # also that of the handler; letters only
    is_background: bool = False  # no client waits: limits of CPU and wall time are higher


class EventFailed(Exception):
    """The handler threw, or the call failed in another way: see `failure`."""

    def __init__(self, failure: Failure, said: bytes = b"") -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.was_refused = False  # the handler did not start
        self._said = said

    def said(self, shape: type[T]) -> T:
        """The partial result of the handler before it threw; an empty `shape` if there is none."""
        try:
            return msgspec.json.decode(self._said, type=shape) if self._said else shape()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return shape()


class Events(Protocol):
    async def run(
        self,
        version: Version,
        event: EventKind,
        label: str,
        meta: Mapping[str, Any],
        body: bytes = b"",
        hops: int = 0,
    ) -> bytes:
        """Run one event of a worker; returns the result of its handler. EventFailed if the call fails.

        `label` is the line of the call in the logs; `meta` and `body` go to the event's JavaScript.
        """
