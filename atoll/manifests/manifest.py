"""The shape of a manifest: the facts about a binding that other packages iterate over.

    MANIFEST = Manifest(kind="echo", make=make, type_name="Echo", …)

Every command imports every manifest, so a manifest imports nothing but this file. A fact that needs other modules of
the binding is a function that imports them when it is called, or the name of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MB = 1024 * 1024


class Facts(NamedTuple):
    """The metadata of a setting."""

    doc: str
    low: float = 0
    high: float = 2**53
    also: str = ""  # a second name in the environment, from the platform's first specification
    shown: str = ""  # the default in words, if the value depends on the machine
    words: tuple[str, ...] = ()  # the allowed values
    free: bool = False  # a list of anything; else of host names


class BindingSetting(NamedTuple):
    """A setting of the node: a flag of `atoll serve`, a variable and a key of atoll.toml follow from it."""

    default: Any
    facts: Facts


class BindingQuota(NamedTuple):
    """A quota of a tenant: `Binding.usage` gives the present use, `Binding.bound` receives the quota."""

    doc: str
    setting: str = ""  # the setting for tenants without a quota of their own; none: unbounded


class CommandGroup(NamedTuple):
    """A group of commands: `module` has a click group of its name."""

    module: str
    help: str
    also: tuple[str, ...] = ()  # the name that users of other tools may type
    # Hints of the API in terms of the command line: regular expression -> replacement
    phrases: Mapping[str, str] = {}


def _no_hosts(settings: Any) -> tuple[str, ...]:
    return ()


class Manifest(NamedTuple):
    """The name of a binding, its inputs, and where its parts are. Only `kind` and `make` are required."""

    kind: str  # the name of its folder, and the `type` of its entries in a deploy
    # (Services, need) -> Binding. `need("cache")` is another binding of the same node, made first.
    make: Callable[[Any, Callable[[str], Any]], Any]
    value: Callable[[Any], Any] | None = None  # (Version) -> the value of env.NAME, for a binding that is a plain value

    # Projects
    config: str = ""  # a module whose FIELDS are the fields of a config that it reads: ConfigField
    type_name: str = ""  # the TypeScript type of env.NAME; <kind>.d.ts declares it
    # (entry, import path of a worker's script by its name) -> a narrower type, or None
    type_of: Callable[[Mapping[str, Any], Callable[[str], str | None]], str | None] | None = None
    names_worker: Callable[[Mapping[str, Any]], str] | None = None  # the tenant's worker that an entry names
    files: str = ""  # a module whose FILES are sent to the node before a deploy: ProjectFiles
    templates: Mapping[str, str] = {}  # templates of `atoll init`, in the folder templates/<name>: what each shows

    # (name of a binding that Atoll does not have, config field) -> the entry that stands in for it
    stand_in: Callable[[str, str], dict[str, Any]] | None = None

    # Nodes
    preloads: tuple[str, ...] = ()  # modules to import while the node starts; else a first call waits for them
    trigger: str = ""  # a module whose TRIGGER is the field of a deploy that asks for events: TriggerField
    handlers: tuple[str, ...] = ()  # handlers that it calls without a field of the deploy
    settings: Mapping[str, BindingSetting] = {}
    quotas: Mapping[str, BindingQuota] = {}
    admin: Callable[[Any, Any], list[Any]] | None = None  # (the Binding, AuditLog) -> its Routes of the control API
    cloudflare: str = ""  # a module whose PART is its part of Cloudflare's API: CloudflarePart
    commands: Mapping[str, CommandGroup] = {}
    # (Settings) -> hosts of the node on which `site` answers; `*.a.b`: all directly below a.b, which must be one itself
    hosts: Callable[[Any], tuple[str, ...]] = _no_hosts
    site: Callable[[Any], Any] | None = None  # (the Binding) -> an ASGI application; it authenticates its callers
    # what it keeps on the disk of one node, in words: several nodes cannot have it yet, and refuse it ("": they can)
    one_node: str = ""
    # what a node by itself keeps on its disk although nodes share it, in words: `atoll migrate` does not move it
    stays: str = ""
    # (SQLite file, SQL that counts): what a data folder holds of either
    holds: tuple[str, str] = ("", "")
    moved: str = ""  # a module whose PART is what `atoll migrate` moves: MovedPart
    # its SQLite file, without `.db`, if it is small and nodes share it; its tables are in its folder `migrations`
    shared_file: str = ""
    # folders in the data folder whose files never change once they are there: backups link to them
    fixed_files: tuple[str, ...] = ()
    cached_files: tuple[str, ...] = ()  # folders in the data folder that may be lost: backups leave them out
