"""Findings about config fields that Atoll does not use: the subfields of `SUBFIELDS`, whole fields, and unknown names.

A name like `routes[].zone_id` means every entry of the list. Each name gets one finding, even if it occurs again.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from atoll.manifests.config_fields import FieldVerdict, Finding, FindingLevel, Subfield
from atoll.manifests.every import config_fields
from atoll.project.shapes import FIELDS, Field

INDEX = re.compile(r"\[\d+\]")
PART = re.compile(r"\[\]|[^.\[]+")


_ZONE = Subfield("a node has no zones")
_PREVIEWS = Subfield("versions have no address of their own", inert=False)
_NOT_FORWARDED = Subfield("`atoll dev` answers requests itself and forwards none")
_NO_INSPECTOR = Subfield("`atoll dev` has no inspector")
_NO_CONTAINERS = Subfield("there are no containers", inert=False)

# Subfields of Cloudflare's config, inside fields that Atoll uses. Those of bindings are in their manifests.
SUBFIELDS: dict[str, Subfield] = {
    **{f"{field}.{name}": _ZONE for field in ("route", "routes[]") for name in ("zone_id", "zone_name")},
    **{f"{field}.previews_enabled": _PREVIEWS for field in ("route", "routes[]")},
    "unsafe.metadata": Subfield("it goes to Cloudflare's API", level=FindingLevel.WARNING),
    "unsafe.capnp": Subfield("it goes to Cloudflare's API", level=FindingLevel.WARNING),
    "unsafe.bindings[].dev": Subfield("`atoll dev` has no plugins", level=FindingLevel.WARNING),
    "dev.inspector_port": _NO_INSPECTOR,
    "dev.inspector_ip": _NO_INSPECTOR,
    "dev.local_protocol": Subfield("`atoll dev` serves HTTP", level=FindingLevel.WARNING, inert="http"),
    "dev.upstream_protocol": _NOT_FORWARDED,
    "dev.host": _NOT_FORWARDED,
    "dev.generate_types": Subfield("run `atoll types`", inert=False),
    "dev.enable_containers": _NO_CONTAINERS,
    "dev.container_engine": _NO_CONTAINERS,
    **{name: subfield for field in config_fields() for name, subfield in field.subfields.items()},
}


def finding_about(name: str, raw: Any, treatment: Field | Subfield) -> Finding | None:
    """The finding about a field that is not used; None if its value has no effect."""
    if _is_empty(raw):
        return None
    if treatment.verdict is FieldVerdict.MISSING:
        return Finding(FindingLevel.ERROR, name, f"is not supported: {treatment.why}")
    is_inert = treatment.inert is not None and raw == treatment.inert
    return None if is_inert else Finding(treatment.level, name, f"is ignored: {treatment.why}")


def _is_empty(raw: Any) -> bool:
    """Build tools write every field, most of them empty: `[]`, `{}`, `{"bindings": []}`."""
    return raw is None or (isinstance(raw, dict) and all(map(_is_empty, raw.values()))) or raw == [] or raw == ""


def findings_inside(name: str, raw: Any, value: Any) -> list[Finding]:
    """Findings about keys of `raw` that `value`, its checked form, does not have."""
    found: dict[str, Finding] = {}
    for place, inner, siblings in _unused(raw, value, name):
        general = INDEX.sub("[]", place)
        subfield = SUBFIELDS.get(general)
        if subfield is None:
            found[place] = unknown(place, siblings)
        elif general not in found and (finding := finding_about(general, inner, subfield)) is not None:
            found[general] = finding
    return list(found.values())


def unknown(place: str, siblings: Iterable[str]) -> Finding:
    """The finding about an unknown field. `siblings` are the names it may be a misspelling of."""
    import difflib  # slow to import, and rarely needed

    head, dot, name = place.rpartition(".")
    close = difflib.get_close_matches(name, list(siblings), n=1)
    hint = f"did you mean `{head}{dot}{close[0]}`?" if close else "leave it out"
    return Finding(FindingLevel.WARNING, place, "is not a known field, so it has no effect", hint)


def treatment_of(path: str) -> FieldVerdict | None:
    """What Atoll does with a field or subfield such as `routes[].pattern`; None if it is unknown."""
    top, *rest = PART.findall(path)
    if top not in FIELDS:
        return None
    place, shape = top, FIELDS[top].shape
    if FIELDS[top].verdict is not FieldVerdict.USED:
        return FIELDS[top].verdict
    for part in rest:
        place += part if part == "[]" else f".{part}"
        if place in SUBFIELDS:
            return SUBFIELDS[place].verdict
        shape = _part_of(shape, part)
        if shape is None:
            return None
    return FieldVerdict.USED


def _unused(raw: Any, value: Any, place: str) -> Iterator[tuple[str, Any, list[str]]]:
    """The keys of `raw` that its shape does not have: the place of each, its value, and the names beside it."""
    if isinstance(raw, list) and isinstance(value, list):
        for index, (inner, checked) in enumerate(zip(raw, value, strict=True)):
            yield from _unused(inner, checked, f"{place}[{index}]")
    if not isinstance(value, msgspec.Struct) or not isinstance(raw, dict):
        return
    prefix = f"{INDEX.sub('[]', place)}."
    siblings = [*value.__struct_fields__, *(name.removeprefix(prefix) for name in SUBFIELDS if name.startswith(prefix))]
    for key, inner in raw.items():
        if key in value.__struct_fields__:
            yield from _unused(inner, getattr(value, key), f"{place}.{key}")
        else:
            yield f"{place}.{key}", inner, siblings


def _part_of(shape: Any, part: str) -> Any:
    """The shape of a part of a shape; None if there is no such part."""
    origin = typing.get_origin(shape)
    if origin in (types.UnionType, typing.Union):
        return next((found for each in typing.get_args(shape) if (found := _part_of(each, part)) is not None), None)
    if shape is Any or origin is dict:
        return Any
    if origin is list:
        return typing.get_args(shape)[0] if part == "[]" else None
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        return typing.get_type_hints(shape).get(part)
    return None
