"""Triggers start calls of workers for events other than requests.

A binding that delivers events has a Trigger. A deploy asks for events in a field that the binding's manifest declares
(`crons`, `queue_consumers`), and `Version.triggers` holds its entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from atoll.logs import Invocation
from atoll.manifests.every import triggers
from atoll.workers import Version


class BadTrigger(ValueError):
    """The entries of a version are not valid, or taken; `hint` says what to do."""

    def __init__(self, message: str, hint: str, *, is_taken: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.is_taken = is_taken  # another worker has the resource


class Trigger:
    """Delivers the events of one field. `entries` are the entries of a version; empty if it has none."""

    hears_calls = False  # whether `hear` wants the records of versions that have entries

    def check(self, version: Version, entries: Sequence[Any]) -> None:
        """BadTrigger if a version cannot have these entries."""

    def admit(self, version: Version, classes: Sequence[str]) -> None:
        """BadTrigger if a version cannot be deployed. Called for every version; `classes` are those it exports."""

    async def prepare(self, version: Version, entries: Sequence[Any]) -> None:
        """Create the missing resources of the entries. Called before a version with them is deployed."""

    def put(self, version: Version, entries: Sequence[Any]) -> None:
        """This version is active now. Called for every version, also without entries."""

    async def drop(self, worker_id: str) -> None:
        """The worker was deleted."""

    def hear(self, record: Invocation) -> None:
        """Receive the record of a finished call of a version with entries."""

    def stop(self) -> None:
        """The node drains: start no new event. Running ones continue."""

    async def close(self) -> None:
        """The node stops."""


class Triggers:
    """All triggers of a node, by the field of a deploy that each serves."""

    def __init__(self, found: Mapping[str, Trigger]) -> None:
        self._triggers = found
        self._hearing = {field: trigger for field, trigger in found.items() if trigger.hears_calls}

    @classmethod
    def of(cls, found: Mapping[str, Trigger | None]) -> Triggers:
        return cls({field: trigger for field, trigger in found.items() if trigger is not None})

    def check(self, version: Version, handlers: Sequence[str], classes: Sequence[str] = ()) -> None:
        """BadTrigger if a version cannot have the events in its deploy."""
        for trigger in self._triggers.values():
            trigger.admit(version, classes)
        for field, entries in version.triggers.items():
            self._triggers[field].check(version, entries)
            handler = triggers()[field].handler
            if handler and handler not in handlers and not self._triggers[field].hears_calls:
                message = f"`{field}` is set, but the worker has no {handler}() handler"
                raise BadTrigger(message, f"export the handler, or leave out `{field}`")

    async def prepare(self, version: Version) -> None:
        for field, entries in version.triggers.items():
            await self._triggers[field].prepare(version, entries)

    def put(self, version: Version) -> None:
        for field, trigger in self._triggers.items():
            trigger.put(version, version.triggers.get(field, ()))

    async def drop(self, worker_id: str) -> None:
        for trigger in self._triggers.values():
            await trigger.drop(worker_id)

    def is_heard(self, version: Version) -> bool:
        """Whether a trigger wants the records of this version's calls."""
        return any(field in version.triggers for field in self._hearing)

    def hear(self, record: Invocation) -> None:
        """Receive the record of a finished call. Runs for every call of a version that has triggers."""
        for field, trigger in self._hearing.items():
            if field in record.version.triggers:
                trigger.hear(record)

    def stop(self) -> None:
        for trigger in self._triggers.values():
            trigger.stop()

    async def close(self) -> None:
        await asyncio.gather(*(trigger.close() for trigger in self._triggers.values()))
