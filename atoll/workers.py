"""A deployed worker as plain data, for use in every package.

A worker is a name and an id. What runs is a Version of it: code, environment and limits, immutable. An update makes a
new Version and points the router to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct

from atoll.assets.table import AssetTable

LOCAL_TENANT = "default"  # owns workers that are deployed without a tenant

WORKER_NAME = re.compile(r"(?=[_-]*[a-z0-9])[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def worker_name(text: str) -> str:
    """A valid worker name, made from the name of a file or folder."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-") or "worker"


def host_label(worker_name: str) -> str:
    """The label of a worker's own host.

    Names may have underscores, as in wrangler. Hosts may not: no authority issues a certificate for such a host, and
    in clients built on OpenSSL a wildcard certificate does not cover it.
    """
    return worker_name.replace("_", "-").strip("-")


Json: TypeAlias = "str | int | float | bool | None | list[Json] | dict[str, Json]"


class ModuleKind(StrEnum):
    """How the engine reads a module's bytes."""

    ESM = "esm"
    JSON = "json"
    TEXT = "text"
    DATA = "data"
    WASM = "wasm"


KIND_OF_ENDING: dict[str, ModuleKind] = {
    ".js": ModuleKind.ESM,
    ".mjs": ModuleKind.ESM,
    ".ts": ModuleKind.ESM,  # with its types removed, like `atoll build` does
    ".mts": ModuleKind.ESM,
    ".json": ModuleKind.JSON,
    ".txt": ModuleKind.TEXT,
    ".html": ModuleKind.TEXT,
    ".sql": ModuleKind.TEXT,
    ".bin": ModuleKind.DATA,
    ".wasm": ModuleKind.WASM,
}


class ScriptFormat(StrEnum):
    """AUTO lets the engine decide: no import and no export means a service-worker script."""

    AUTO = "auto"
    MODULE = "module"
    SERVICE_WORKER = "service-worker"


class Isolation(StrEnum):
    """What the calls of a worker share: see docs/concepts/isolation.md."""

    POOL = "pool"  # an isolate and its globals
    CONTEXT = "context"  # an isolate, one call at a time; each call has new globals
    ISOLATE = "isolate"  # nothing
    PROCESS = "process"  # an isolate and its globals, in an engine process of its tenant alone


class Module(Struct, frozen=True):
    """One file of a worker, under the path that imports resolve against."""

    path: str
    kind: ModuleKind
    source: bytes


class Limits(Struct, frozen=True):
    """The limits of one version. The node's settings cap each of them."""

    cpu_ms: int = 50
    wall_ms: int = 30_000
    memory_mb: int = 128
    subrequests: int = 50  # fetches in one call, each redirect included
    internal_subrequests: int = 1_000  # binding calls in one call
    timer_ms: int = 30_000  # the longest timer that a request waits for


class Switches(Struct, frozen=True):
    """Features that are off unless the worker's deploy turns them on."""

    allow_eval: bool = False  # eval, new Function and timers with code in a string, once the worker has started
    allow_wasm_compile: bool = False  # WebAssembly from bytes, not only from modules
    allow_shared_memory: bool = False  # the global SharedArrayBuffer
    allow_live_clock: bool = False  # time advances while it computes, if the node's worker_clock is live


class EgressRules(Struct, frozen=True):
    """A worker's own egress rules, which apply with the node's: the lists of egress/rules.py as they were written."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Grant(Struct, frozen=True):
    """A binding of a worker: its name in `env`, its kind, and the resource that only Python knows.

    `fields` is the entry of the deploy without type and name, as the API shows it and the store keeps it.
    """

    name: str
    kind: str
    resource: str = ""
    fields: Mapping[str, Json] = {}


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
    triggers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # by field of the deploy; no value is empty
    tag: str = ""
    created_at: int = 0  # ms since 1970
    isolation: Isolation = Isolation.POOL
    switches: Switches = field(default_factory=Switches)
    has_code: bool = True  # false: a preview. `modules` is empty, and the code is read when it is loaded
    # The size of all modules, if only the store has the code of a version with traffic: most workers of a node are not
    # loaded. `modules` is empty, and read when it is loaded
    stored_bytes: int = 0
    preview_urls: bool = True  # it may be reached by a preview URL, if the active version allows it too
    assets: AssetTable | None = field(default=None, repr=False)  # files that are served without the worker

    @property
    def is_whole(self) -> bool:
        """Whether its code is in `modules`."""
        return self.has_code and not self.stored_bytes
