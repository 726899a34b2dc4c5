"""Turns the JSON of a deploy into checked parts of a Version. Pure: no I/O, no state; every refusal has its reason.

The shapes define the fields; the functions below check their values. An unknown name is rejected, never ignored: a
mistyped `routes` must not deploy a worker that has no route.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.assets.rules import AssetRules
from atoll.config import Settings
from atoll.config_file import nearest
from atoll.control.checks.extended import list_of, with_fields
from atoll.control.checks.rollback import WantedRollback
from atoll.egress.rules import parse_rules
from atoll.manifests.every import triggers
from atoll.nesting import MAX_LEVELS, is_too_deep
from atoll.workers import WORKER_NAME, EgressRules, Isolation, Json, Limits, Switches

MAX_MODULES = 1_000
MAX_PATH = 255
MAX_VARS = 128
MAX_VAR_BYTES = 5 * 1024
MAX_ROUTES = 100
MAX_PATTERN = 1_000
MAX_LOOKED_AT = 100  # entries of a list whose fields are checked for better hints

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Binary(msgspec.Struct, forbid_unknown_fields=True):
    """A module that is not text."""

    base64: str
    kind: str = ""  # the kind of module, if the extension does not tell


class WantedLimits(msgspec.Struct, forbid_unknown_fields=True):
    cpu_ms: int | UnsetType = UNSET
    wall_ms: int | UnsetType = UNSET
    memory_mb: int | UnsetType = UNSET
    subrequests: int | UnsetType = UNSET
    internal_subrequests: int | UnsetType = UNSET
    timer_ms: int | UnsetType = UNSET


class WantedEgress(msgspec.Struct, forbid_unknown_fields=True):
    """The destinations that a worker or a tenant may connect to. Both lists are replaced together."""

    allow: list[str] = []
    deny: list[str] = []


@with_fields((name, list_of(trigger.entry) | UnsetType, UNSET) for name, trigger in triggers().items())
class DeployBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST and PUT. Fields that PUT leaves out stay as they are."""

    name: str | UnsetType = UNSET
    script: str | UnsetType = UNSET
    modules: dict[str, str | Binary] | UnsetType = UNSET
    main: str | UnsetType = UNSET
    routes: list[str] | UnsetType = UNSET
    env: dict[str, Any] | UnsetType = UNSET
    secrets: dict[str, str] | UnsetType = UNSET  # added to the existing secrets: a deploy removes none
    bindings: list[dict[str, Any]] | UnsetType = UNSET
    limits: WantedLimits | UnsetType = UNSET
    isolation: str | UnsetType = UNSET
    switches: dict[str, Any] | UnsetType = UNSET
    egress: WantedEgress | UnsetType = UNSET
    compatibility_date: str | UnsetType = UNSET
    compatibility_flags: list[str] | UnsetType = UNSET
    source_maps: dict[str, str] | UnsetType = UNSET  # by path of the module
    assets: AssetRules | None | UnsetType = UNSET  # null removes them
    message: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    preview_urls: bool | UnsetType = UNSET
    rollback: WantedRollback | UnsetType = UNSET  # of the deployment, not of the version


Shape = TypeVar("Shape")


def parse_fields(raw: bytes, shape: type[Shape]) -> Shape:
    """Decode a body that is one JSON object of a known shape."""
    fields = _parse_object(raw, shape)
    try:
        return msgspec.convert(fields, shape)
    except msgspec.ValidationError as error:
        raise misfit(error) from None


def _parse_object(raw: bytes, shape: type) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_body(f"the body is not JSON: {error}", "send one JSON object in UTF-8") from None
    if not isinstance(fields, dict):
        raise bad_body("the body is not a JSON object", f"the known fields are {_listed(shape)}")
    _refuse_unknown(fields, shape, "")
    return fields


def parse_body(raw: bytes) -> DeployBody:
    """Decode the body of a deploy. The fields of nested objects are checked too, for better hints."""
    fields = _parse_object(raw, DeployBody)
    if isinstance(fields.get("limits"), dict):
        _refuse_unknown(fields["limits"], WantedLimits, "limits.")
    if isinstance(fields.get("egress"), dict):
        _refuse_unknown(fields["egress"], WantedEgress, "egress.")
    if isinstance(fields.get("rollback"), dict):
        _refuse_unknown(fields["rollback"], WantedRollback, "rollback.")
    for name, trigger in triggers().items():
        for entry in fields[name][:MAX_LOOKED_AT] if isinstance(fields.get(name), list) else ():
            if isinstance(entry, dict) and hasattr(trigger.entry, "__struct_fields__"):
                _refuse_unknown(entry, trigger.entry, f"{name}.")
    try:
        return msgspec.convert(fields, DeployBody)
    except msgspec.ValidationError as error:
        raise misfit(error) from None


def misfit(error: msgspec.ValidationError) -> Refused:
    """The error for a value of the wrong type."""
    where = str(error).replace("$.", "").replace("Expected", "expected", 1)
    return bad_body(f"the body does not fit: {where}", "see docs/reference/api.md for the fields")


def _refuse_unknown(fields: Mapping[str, object], shape: type, prefix: str) -> None:
    known = dict.fromkeys(_fields(shape))
    for name in fields:
        if name not in known:
            hint = nearest(name[:80], known)
            listed = f" The known fields are {_listed(shape)}" if hint.startswith("did") else ""
            raise bad_body(f"unknown field `{prefix}{name[:80]}`", hint + listed)


def _listed(shape: type) -> str:
    return ", ".join(_fields(shape))


@functools.cache  # inspecting a shape takes longer than the rest of a small deploy
def _fields(shape: type) -> list[str]:
    return [field.name for field in msgspec.inspect.type_info(shape).fields]  # type: ignore[attr-defined]


def checked_name(name: str | UnsetType) -> str:
    if name is UNSET:
        raise bad_body("`name` is missing", 'a worker needs a name: {"name": "hello", "script": "…"}')
    if not WORKER_NAME.fullmatch(name):
        raise Refused(
            ApiCode.BAD_NAME,
            f"a worker cannot be named {name[:80]!r}",
            "use 1 to 63 lower-case letters, digits, `_` and `-`, without `-` at either end: it becomes a host name",
        )
    return name


def checked_env(env: Mapping[str, Json]) -> dict[str, Json]:
    if len(env) > MAX_VARS:
        raise Refused(
            ApiCode.TOO_MANY_VARS,
            f"`env` has {len(env)} variables, more than the limit of {MAX_VARS}",
            "combine some of them",
        )
    for name, value in env.items():
        if not IDENTIFIER.fullmatch(name) or len(name) > MAX_PATH:
            raise bad_body(f"`env` has a variable named {name[:80]!r}", "use letters, digits, _ and $, no digit first")
        if is_too_deep(value):
            hint = "put deep values into a module"
            raise bad_body(f"`env.{name}` is nested more than {MAX_LEVELS} levels deep", hint)
        size = len(value.encode()) if isinstance(value, str) else len(msgspec.json.encode(value))
        if size > MAX_VAR_BYTES:
            raise Refused(
                ApiCode.VAR_TOO_BIG,
                f"`env.{name}` has {size:,} bytes, more than the limit of {MAX_VAR_BYTES:,}",
                "put large values into a module",
            )
    return dict(env)


def checked_limits(wanted: WantedLimits, settings: Settings) -> Limits:
    """The limits of a version: those it asks for, within the node's caps, and the node's defaults for the rest."""
    values = {}
    for name in wanted.__struct_fields__:
        value, cap = getattr(wanted, name), getattr(settings, f"max_{name}")
        if value is UNSET:
            value = getattr(settings, name)
        lowest = 8 if name == "memory_mb" else 1  # an isolate with less cannot even start
        if not lowest <= value <= cap:
            raise Refused(
                ApiCode.BAD_LIMIT,
                f"`limits.{name}` is {value}, but must be a whole number from {lowest} to {cap}",
                f"the cap is this node's setting max_{name}, or the tenant's quota of that name",
            )
        values[name] = value
    return Limits(**values)


def checked_isolation(isolation: str) -> Isolation:
    try:
        return Isolation(isolation)
    except ValueError:
        raise bad_body(f"`isolation` is {isolation[:80]!r}", f"use one of {', '.join(Isolation)}") from None


def checked_switches(wanted: Mapping[str, object], current: Switches, settings: Settings) -> Switches:
    """The switches of a version: those in the body change, the others stay."""
    known = dict.fromkeys(Switches.__struct_fields__)
    for name, value in wanted.items():
        if name not in known:
            raise bad_body(f"unknown field `switches.{name[:80]}`", nearest(name[:80], known))
        if not isinstance(value, bool):
            raise bad_body(f"`switches.{name}` must be true or false", "switches are off unless they are true")
    if wanted.get("allow_live_clock") and settings.worker_clock != "live":
        raise bad_body(
            "`switches.allow_live_clock` is not allowed on this node: a live clock can measure other tenants",
            "an operator who trusts all code on the node starts it with --worker-clock live",
        )
    return msgspec.structs.replace(current, **wanted)  # just checked


def checked_egress(wanted: WantedEgress) -> EgressRules:
    rules = EgressRules(tuple(wanted.allow), tuple(wanted.deny))
    for name, texts in (("allow", rules.allow), ("deny", rules.deny)):
        try:
            parse_rules(texts)
        except ValueError as error:
            raise bad_body(
                f"`egress.{name}` is not valid: {error}",
                "rules are like example.com, *.example.com:443, 10.0.0.0/8, *:25",
            ) from None
    return rules


def checked_date(date: str, today: datetime.date) -> str:
    try:
        if not DATE.fullmatch(date):
            raise ValueError
        day = datetime.date.fromisoformat(date)
    except ValueError:
        raise bad_body(f"`compatibility_date` is {date[:80]!r}, not a date", "write it like 2026-01-31") from None
    if day > today:
        raise bad_body(f"`compatibility_date` is {date}, which is in the future", f"the latest is {today.isoformat()}")
    return date
