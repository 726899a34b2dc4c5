"""What the node passes to the endpoints of a binding (`bindings/<kind>/admin.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from atoll.api.audit import AuditLog
from atoll.api.callers import Caller
from atoll.workers import Version


class DeployedWorker(Protocol):
    """A worker and its active version."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> Version: ...
    @property
    def handlers(self) -> tuple[str, ...]: ...


class AdminTools(Struct, frozen=True):
    audit: AuditLog
    find_worker: Callable[
        [str, Caller], DeployedWorker
    ]  # by id or name; Refused if the caller's tenant has no such worker
    workers_of: Callable[[str], Iterator[DeployedWorker]]  # all workers of a tenant, by name
