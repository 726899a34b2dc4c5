"""The interfaces of engines and triggers that a deploy uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from atoll.bindings.services import InnerCall, InnerRequest
from atoll.workers import Version


class Loaded(Protocol):
    """An engine's report on a loaded version."""

    @property
    def handlers(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def startup_ms(self) -> float: ...


class Checker(Protocol):
    """The part of engine.pool.Pool that a deploy uses."""

    async def check(self, version: Version) -> Loaded: ...
    def retire(self, version: Version) -> None: ...
    def moved(self, tenant: str, worker_name: str) -> None: ...


class DeployTriggers(Protocol):
    """The part of bindings.triggers.Triggers that a deploy uses: the events that start workers."""

    def check(self, version: Version, handlers: Sequence[str], classes: Sequence[str] = ()) -> None: ...
    async def prepare(self, version: Version) -> None: ...
    def put(self, version: Version) -> None: ...
    async def drop(self, worker_id: str) -> None: ...


class StartsCalls(Protocol):
    """The part of engine.calls.WorkerCalls that runs a draft."""

    def start(self, request: InnerRequest) -> InnerCall: ...
