"""Turns the metadata of an upload into the body of a deploy, and the bindings of a version back into metadata.

An upload replaces everything that a deploy can set, except what it names in `keep_bindings`, what a binding of the type
`inherit` names, and secrets, which only their own endpoints delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from atoll.api.cloudflare import CloudflareRefusal
from atoll.api.refusals import bad_body
from atoll.control.checks.bindings import MAX_BINDINGS, Kinds
from atoll.control.checks.body import DeployBody, WantedLimits, misfit
from atoll.control.checks.code import Unpacked, unpacked
from atoll.control.checks.words import MAX_MESSAGE, MAX_TAG
from atoll.control.cloudflare.forms import UploadForm
from atoll.control.store.workers import Deployment
from atoll.manifests.cloudflare_parts import OTHER_TYPES, CloudflareType, Uploading
from atoll.manifests.every import cloudflare_parts
from atoll.workers import Version

SECRET = "secret_text"


class CoreMetadata(Struct):
    """The fields of the metadata that are not about one kind of binding. All others are ignored."""

    main_module: str | UnsetType = UNSET
    body_part: str | UnsetType = UNSET  # the script of a service worker
    bindings: list[dict[str, Any]] = []
    keep_bindings: list[str] = []
    compatibility_date: str | UnsetType = UNSET
    compatibility_flags: list[str] = []
    limits: dict[str, Any] | None = None
    annotations: dict[str, str] | None = None


class BindingTypes:
    """The types of bindings in Cloudflare's API, by name, and how each is read and shown."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._types: dict[str, tuple[str, CloudflareType]] = {}
        self._of_kind: dict[str, CloudflareType] = {}
        for kind, part in cloudflare_parts().items():
            for each in part.types:
                self._types[each.type] = kind, each
                self._of_kind.setdefault(kind, each)

    def read(self, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of a deploy for an entry of the metadata."""
        kind, found = self._types.get(entry["type"]) or self._types[OTHER_TYPES]
        try:
            fields = found.read(self._kinds[kind], tenant, entry)
        except ValueError as error:
            text = f"the binding {entry['name'][:80]} of the type {entry['type'][:80]} does not fit: {error}"
            raise CloudflareRefusal(400, 10021, text) from None
        return {"type": kind, "name": entry["name"], **fields}

    def shown(self, version: Version) -> list[dict[str, Any]]:
        """The bindings of a version as Cloudflare's API shows them, variables and names of secrets included."""
        found: list[dict[str, Any]] = []
        for name, value in version.env.items():
            is_text = isinstance(value, str)
            found.append(
                {"type": "plain_text" if is_text else "json", "name": name, "text" if is_text else "json": value}
            )
        found += [{"type": SECRET, "name": name} for name in version.secrets]
        for grant in version.grants.values():
            if each := self._of_kind.get(grant.kind):
                fields = each.shown(self._kinds[grant.kind], version.tenant, grant.fields)
                found.append({"type": each.type, "name": grant.name, **fields})
        return found

    def metadata(self, upload: Uploading) -> dict[str, Any]:
        """The fields of a deploy that bindings read from the metadata."""
        found: dict[str, Any] = {}
        for kind, part in cloudflare_parts().items():
            if part.metadata is not None and kind in self._kinds:
                found |= part.metadata(self._kinds[kind], upload)
        return found


def deploy_body(
    form: UploadForm, tenant: str, script: str, current: Deployment | None, types: BindingTypes
) -> Unpacked:
    """The deploy that an upload means. `current` is the version before."""
    core = _core(form.metadata)
    before = current.version if current is not None else None
    values = Values(tenant, before, types)
    for entry in core.bindings:
        values.add(entry)
    values.keep(core.keep_bindings)
    annotations = core.annotations or {}
    body = {
        "env": values.env,
        "secrets": values.secrets or UNSET,
        "bindings": values.bindings,
        "limits": _limits(core.limits or {}),
        "compatibility_date": core.compatibility_date,
        "compatibility_flags": core.compatibility_flags,
        "message": annotations.get("workers/message", "")[:MAX_MESSAGE],
        "tag": annotations.get("workers/tag", "")[:MAX_TAG],
        **types.metadata(Uploading(tenant, script, form.metadata, before)),
    }
    given = {name: value for name, value in body.items() if value is not UNSET}
    try:
        found = unpacked(msgspec.convert(msgspec.to_builtins(given), DeployBody))
    except msgspec.ValidationError as error:
        raise misfit(error) from None
    main = core.main_module if core.main_module is not UNSET else core.body_part
    main = main if main is UNSET else main.removeprefix("./")
    # A worker of static files alone has no module
    return msgspec.structs.replace(found, code=tuple(form.modules), main=main, maps=form.maps or UNSET)


def _core(metadata: Mapping[str, Any]) -> CoreMetadata:
    try:
        core = msgspec.convert(metadata, CoreMetadata)
    except msgspec.ValidationError as error:
        raise misfit(error) from None
    if len(core.bindings) > 4 * MAX_BINDINGS:
        raise bad_body(f"`bindings` has {len(core.bindings)} entries, more than the limit of {4 * MAX_BINDINGS}")
    for entry in core.bindings:
        if not isinstance(entry.get("type"), str) or not isinstance(entry.get("name"), str):
            raise bad_body("a binding has no `type` or no `name`")
    return core


def _limits(limits: Mapping[str, Any]) -> WantedLimits:
    known = {name: value for name, value in limits.items() if name in WantedLimits.__struct_fields__}
    try:
        return msgspec.convert({name: value for name, value in known.items() if value is not None}, WantedLimits)
    except msgspec.ValidationError as error:
        raise misfit(error) from None


class Values:
    """The contents of `env` in an upload: variables, secrets and bindings."""

    def __init__(self, tenant: str, before: Version | None, types: BindingTypes) -> None:
        self._tenant = tenant
        self._types = types
        self._before = {each["name"]: each for each in types.shown(before)} if before is not None else {}
        self.env: dict[str, Any] = {}
        self.secrets: dict[str, str] = {}
        self.bindings: list[dict[str, Any]] = []
        self._names: set[str] = set()

    def add(self, entry: Mapping[str, Any]) -> None:
        kind, name = entry["type"], entry["name"]
        if name in self._names:
            raise bad_body(f"`{name[:80]}` is given twice", "a name in `env` can mean one thing only")
        self._names.add(name)
        if kind == "inherit":
            old = entry.get("old_name") or name
            found = self._before.get(old) if isinstance(old, str) else None
            if found is None:
                text = f"the binding {name[:80]} inherits from a binding that the last version does not have"
                raise CloudflareRefusal(400, 10057, text)
            self._put({**found, "name": name})
        else:
            self._put(entry)

    def keep(self, kinds: list[str]) -> None:
        for name, entry in self._before.items():
            if name not in self._names and entry["type"] in kinds:
                self._put(entry)

    def _put(self, entry: Mapping[str, Any]) -> None:
        kind, name = entry["type"], entry["name"]
        if kind in ("plain_text", "json"):
            field = "text" if kind == "plain_text" else "json"
            if field not in entry:
                raise bad_body(f"the variable `{name[:80]}` has no `{field}`")
            self.env[name] = entry[field]
        elif kind == SECRET:
            if "text" in entry:  # else it is one that stays
                text = entry["text"]
                if not isinstance(text, str):
                    raise bad_body(f"the secret `{name[:80]}` is not a text")
                self.secrets[name] = text
        else:
            self.bindings.append(self._types.read(self._tenant, entry))
