"""What a deployed worker is: plain data that every room may hold, and no room owns.

A worker is a name and an id. What runs is a Version of it: code, environment and limits, never changed once made.
An update makes a new Version and lets the router point to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

LOCAL_TENANT = "default"  # whose workers are that nobody deployed for another tenant

Json: TypeAlias = "str | int | float | bool | None | list[Json] | dict[str, Json]"


class ModuleKind(StrEnum):
    """How the engine reads a module's bytes."""

    ESM = "esm"
    JSON = "json"
    TEXT = "text"
    DATA = "data"
    WASM = "wasm"


class ScriptFormat(StrEnum):
    """AUTO lets the engine decide: no import and no export means a service-worker script."""

    AUTO = "auto"
    MODULE = "module"
    SERVICE_WORKER = "service-worker"


class Isolation(StrEnum):
    """What calls of a worker share: see docs/concepts/isolation.md."""

    POOL = "pool"  # an isolate and its globals
    CONTEXT = "context"  # an isolate, one call after the other; globals are new for each
    ISOLATE = "isolate"  # nothing
    PROCESS = "process"  # an isolate and its globals, in an engine process that is its tenant's alone


class Module(Struct, frozen=True):
    """One file of a worker, under the path that imports resolve against."""

    path: str
    kind: ModuleKind
    source: bytes


class Limits(Struct, frozen=True):
    """What one version may use. The node's configuration caps each of them."""

    cpu_ms: int = 50
    wall_ms: int = 30_000
    memory_mb: int = 128
    subrequests: int = 50  # fetches in one call, each redirect included
    internal_subrequests: int = 1_000  # what one call may ask of its bindings
    timer_ms: int = 30_000  # the longest delay of a timer


class Switches(Struct, frozen=True):
    """What is off for a worker unless its deploy turns it on."""

    allow_eval: bool = False  # eval, new Function and timers with code in a string, once the worker has started
    allow_wasm_compile: bool = False  # WebAssembly from bytes, not only from modules
    allow_shared_memory: bool = False  # the global SharedArrayBuffer
    allow_live_clock: bool = False  # time passes while it computes, to microseconds; if the node's worker_clock is live


class EgressRules(Struct, frozen=True):
    """Where a worker may connect to, beside what the node allows: the lists of egress/rules.py as they were written."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Grant(Struct, frozen=True):
    """A binding a worker was given: the name it sees in `env`, the kind, and the resource only Python knows.

    `fields` is the entry of the deploy it came from, without type and name: what the API shows and the store keeps.
    """

    name: str
    kind: str
    resource: str = ""
    fields: Mapping[str, Json] = {}


class QueueConsumer(Struct, frozen=True):
    """A queue whose messages a worker takes, and how. Times are seconds."""

    queue: str
    max_batch_size: int = 10
    max_batch_timeout: float = 5
    max_retries: int = 3
    dead_letter_queue: str | None = None  # where a message goes after the last retry; None: away
    retry_delay: float | None = None  # None: longer and longer
    max_concurrency: int | None = None  # batches at the same time; None: as the node likes


class TailConsumer(Struct, frozen=True):
    """A worker that is told of every call of this one."""

    service: str


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One immutable version of a worker, as the engine loads it. Compared by identity."""

    id: str
    worker_id: str
    worker_name: str
    tenant: str
    modules: tuple[Module, ...]
    main: str
    format: ScriptFormat = ScriptFormat.AUTO
    env: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # also in its `env`, and nowhere else
    grants: Mapping[str, Grant] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    compatibility_date: str = ""
    egress: EgressRules = field(default_factory=EgressRules)
    compatibility_flags: tuple[str, ...] = ()
    crons: tuple[str, ...] = ()
    queue_consumers: tuple[QueueConsumer, ...] = ()
    tail_consumers: tuple[TailConsumer, ...] = ()
    tag: str = ""
    created_at: int = 0  # ms since 1970
    isolation: Isolation = Isolation.POOL
    switches: Switches = field(default_factory=Switches)
