"""`bindings` of a deploy: each entry becomes a Grant, by the rules of its kind. Pure, like body.py.

    {"type": "kv", "name": "CACHE", "namespace": "cache"}   ->   Grant("CACHE", "kv", resource, {"namespace": "cache"})

An entry has a type, the name that the worker sees in `env`, and the fields of its kind (Binding.Entry).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.bindings.base import Binding
from atoll.config_file import nearest
from atoll.control.checks.body import IDENTIFIER, MAX_PATH
from atoll.errors import InvalidArgument
from atoll.workers import Grant, Json, Version

MAX_BINDINGS = 128

Kinds = Mapping[str, Binding]


def checked_bindings(entries: Sequence[Mapping[str, Any]], kinds: Kinds, tenant: str) -> dict[str, Grant]:
    """The grants for a list of entries, by name."""
    if len(entries) > MAX_BINDINGS:
        raise bad_body(f"`bindings` has {len(entries)} entries, more than the limit of {MAX_BINDINGS}")
    grants: dict[str, Grant] = {}
    for entry in entries:
        grant = checked_binding(entry, kinds, tenant)
        if grant.name in grants:
            raise bad_body(f"two bindings are named `{grant.name}`", "a name in `env` can mean one thing only")
        grants[grant.name] = grant
    return grants


def checked_binding(entry: Mapping[str, Any], kinds: Kinds, tenant: str) -> Grant:
    name = entry.get("name")
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name) or len(name) > MAX_PATH:
        raise Refused(
            ApiCode.BINDING_NAME,
            f"a binding is named {name!r:.80}" if name is not None else "a binding has no `name`",
            "the worker finds it as env.<name>: use letters, digits, _ and $, no digit first",
        )
    binding = kinds.get(entry["type"]) if isinstance(entry.get("type"), str) else None
    if binding is None or binding.ambient:
        known = {kind: None for kind, binding in kinds.items() if not binding.ambient}
        raise bad_body(
            f"the binding `{name}` has the type {entry.get('type')!r:.80}", nearest(str(entry.get("type")), known)
        )
    fields: dict[str, Json] = {key: value for key, value in entry.items() if key not in ("type", "name")}
    try:
        resource = binding.claim(tenant, msgspec.convert(fields, binding.Entry))
    except msgspec.ValidationError as error:
        hint = f"a {binding.kind} binding takes {', '.join(binding.Entry.__struct_fields__) or 'no fields'}"
        raise bad_body(f"the binding `{name}` does not fit: {error}", hint) from None
    except InvalidArgument as error:
        raise bad_body(f"the binding `{name}` does not fit: {error}") from None
    return Grant(name, binding.kind, resource, fields)


async def refuse_gone_bindings(version: Version, kinds: Kinds) -> None:
    """Refuse a version whose namespaces, queues or other workers do not all exist any more."""
    grants = version.grants.values()
    gone = [grant.name for grant in grants if not await kinds[grant.kind].exists(version.tenant, grant.resource)]
    if gone:
        raise Refused(
            ApiCode.BINDING_GONE,
            f"the version is bound to resources that were deleted: {', '.join(gone)[:400]}",
            "with force the version becomes active with new, empty ones",
        )


def shown_bindings(grants: Mapping[str, Grant]) -> list[dict[str, Json]]:
    """The entries that grants were made from."""
    return [{"type": grant.kind, "name": grant.name, **grant.fields} for grant in grants.values()]
