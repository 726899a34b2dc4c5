"""How a binding appears in Cloudflare's API: the part of a binding in /client/v4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

OTHER_TYPES = "*"


class CloudflareType(Struct, frozen=True):
    """A type of binding in Cloudflare's uploads, and the entry of a deploy that it is here.

    `binding` is the Binding, `entry` the entry without checks: only its `type` and `name` are known to be strings.
    """

    type: str  # OTHER_TYPES: every type that no other binding reads
    read: Callable[[Any, str, Mapping[str, Any]], dict[str, Any]]  # (binding, tenant, entry) -> fields of our entry
    shown: Callable[[Any, str, Mapping[str, Any]], dict[str, Any]]  # (binding, tenant, fields of our entry) -> theirs


class Uploading(Struct, frozen=True):
    """An upload of a worker, for what a binding reads of it."""

    tenant: str
    script: str
    metadata: Mapping[str, Any]  # unchecked JSON
    current: Any = None  # the active Version; None: the worker is new


class CloudflarePart(Struct, frozen=True):
    types: tuple[CloudflareType, ...] = ()
    metadata: Callable[[Any, Uploading], dict[str, Any]] | None = None  # (binding, upload) -> fields of a deploy
    facts: Callable[[Any], dict[str, Any]] | None = None  # (Version) -> fields in answers about a script
    routes: Callable[[Any, Any], list[Any]] | None = None  # (binding, CloudflareTools) -> Routes below /client/v4
    of_worker: str = ""  # a field of a deploy, with entries {service}, that the newer API gives to the worker
    reference: str = ""  # a list among the references of a worker in the newer API


def text_of(entry: Mapping[str, Any], field: str) -> str:
    """A field of an entry that must be a text. ValueError if it is not."""
    value = entry.get(field)
    if not isinstance(value, str):
        raise ValueError(f"`{field}` is missing")
    return value
