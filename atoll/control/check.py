"""From the JSON of a deploy to the checked parts of a Version. Pure: no I/O, no state, every refusal with its reason.

The shapes say what the fields are; the functions below say what their values may be. A name that does not exist is
refused, never ignored: a typing error in `routes` must not deploy a worker that nobody can reach.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from atoll.config import Settings
from atoll.config_file import nearest
from atoll.control.refusals import ApiCode, Refused
from atoll.egress.rules import parse_rules
from atoll.workers import (
    EgressRules,
    Isolation,
    Json,
    Limits,
    Module,
    ModuleKind,
    QueueConsumer,
    Switches,
    TailConsumer,
)

MAX_MODULES = 1_000
MAX_PATH = 255
MAX_VARS = 128
MAX_VAR_BYTES = 5 * 1024
MAX_ROUTES = 100
MAX_PATTERN = 1_000
SCRIPT_PATH = "worker.js"  # what a single script is called in stacks

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# A colon would look like a scheme, a backslash or a percent sign like another path, ? and # like the end of one.
FORBIDDEN_IN_PATH = re.compile(r"[\x00-\x1f\x7f\\:?#%]")

KINDS: dict[str, ModuleKind] = {
    ".js": ModuleKind.ESM,
    ".mjs": ModuleKind.ESM,
    ".ts": ModuleKind.ESM,  # with its types taken out, as `atoll build` does
    ".mts": ModuleKind.ESM,
    ".json": ModuleKind.JSON,
    ".txt": ModuleKind.TEXT,
    ".html": ModuleKind.TEXT,
    ".sql": ModuleKind.TEXT,
    ".bin": ModuleKind.DATA,
    ".wasm": ModuleKind.WASM,
}


class Binary(msgspec.Struct, forbid_unknown_fields=True):
    """A module that is not text."""

    base64: str
    kind: str = ""  # what it is, where the extension does not say it


class WantedLimits(msgspec.Struct, forbid_unknown_fields=True):
    cpu_ms: int | UnsetType = UNSET
    wall_ms: int | UnsetType = UNSET
    memory_mb: int | UnsetType = UNSET
    subrequests: int | UnsetType = UNSET
    internal_subrequests: int | UnsetType = UNSET
    timer_ms: int | UnsetType = UNSET


class WantedEgress(msgspec.Struct, forbid_unknown_fields=True):
    """Where a worker or a tenant may connect to. Both lists are replaced together."""

    allow: list[str] = []
    deny: list[str] = []


class DeployBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST and PUT. What PUT leaves out stays as it is."""

    name: str | UnsetType = UNSET
    script: str | UnsetType = UNSET
    modules: dict[str, str | Binary] | UnsetType = UNSET
    main: str | UnsetType = UNSET
    routes: list[str] | UnsetType = UNSET
    env: dict[str, Any] | UnsetType = UNSET
    secrets: dict[str, str] | UnsetType = UNSET  # beside those that are there: a deploy takes none away
    bindings: list[dict[str, Any]] | UnsetType = UNSET
    limits: WantedLimits | UnsetType = UNSET
    isolation: str | UnsetType = UNSET
    switches: dict[str, Any] | UnsetType = UNSET
    egress: WantedEgress | UnsetType = UNSET
    compatibility_date: str | UnsetType = UNSET
    compatibility_flags: list[str] | UnsetType = UNSET
    crons: list[str] | UnsetType = UNSET
    queue_consumers: list[QueueConsumer] | UnsetType = UNSET
    tail_consumers: list[TailConsumer] | UnsetType = UNSET
    source_maps: dict[str, str] | UnsetType = UNSET  # by path of the module
    message: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET


Shape = TypeVar("Shape")


def bad_body(message: str, hint: str = "") -> Refused:
    return Refused(ApiCode.BAD_BODY, message, hint)


def parse_fields(raw: bytes, shape: type[Shape]) -> Shape:
    """A body that is one JSON object of a known shape."""
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
        raise bad_body("the body is not a JSON object", f"its fields may be {_listed(shape)}")
    _refuse_unknown(fields, shape, "")
    return fields


def parse_body(raw: bytes) -> DeployBody:
    """The body of a deploy. Beside its own fields those of the objects in it are looked at, for better hints."""
    fields = _parse_object(raw, DeployBody)
    if isinstance(fields.get("limits"), dict):
        _refuse_unknown(fields["limits"], WantedLimits, "limits.")
    if isinstance(fields.get("egress"), dict):
        _refuse_unknown(fields["egress"], WantedEgress, "egress.")
    for name, shape in (("queue_consumers", QueueConsumer), ("tail_consumers", TailConsumer)):
        for entry in fields[name] if isinstance(fields.get(name), list) else ():
            if isinstance(entry, dict):
                _refuse_unknown(entry, shape, f"{name}.")
    try:
        return msgspec.convert(fields, DeployBody)
    except msgspec.ValidationError as error:
        raise misfit(error) from None


def misfit(error: msgspec.ValidationError) -> Refused:
    """A value of the wrong type, as the API tells it."""
    where = str(error).replace("$.", "").replace("Expected", "expected", 1)
    return bad_body(f"the body does not fit: {where}", "see docs/reference/api.md for the fields")


def _refuse_unknown(fields: Mapping[str, object], shape: type, prefix: str) -> None:
    known = dict.fromkeys(_fields(shape))
    for name in fields:
        if name not in known:
            hint = nearest(name, known)
            listed = f" The known fields are {_listed(shape)}" if hint.startswith("did") else ""
            raise bad_body(f"unknown field `{prefix}{name}`", hint + listed)


def _listed(shape: type) -> str:
    return ", ".join(_fields(shape))


@functools.cache  # to look at a shape takes longer than all else that a small deploy asks of the event loop
def _fields(shape: type) -> list[str]:
    return [field.name for field in msgspec.inspect.type_info(shape).fields]  # type: ignore[attr-defined]


def checked_name(name: str | UnsetType) -> str:
    if name is UNSET:
        raise bad_body("`name` is missing", 'a worker needs a name: {"name": "hello", "script": "…"}')
    if not NAME.fullmatch(name):
        raise Refused(
            ApiCode.BAD_NAME,
            f"a worker cannot be named {name[:80]!r}",
            "use 1 to 63 lower-case letters, digits and dashes, without a dash at either end: it becomes a host name",
        )
    return name


def checked_code(body: DeployBody, max_bytes: int) -> tuple[tuple[Module, ...], str]:
    """The modules of a body and the path of the main one."""
    if body.script is not UNSET:
        if body.modules is not UNSET or body.main is not UNSET:
            raise bad_body("`script` and `modules` were both given", "send `script`, or `modules` with `main`")
        modules = [Module(SCRIPT_PATH, ModuleKind.ESM, body.script.encode())]
        main = SCRIPT_PATH
    else:
        if body.modules is UNSET:
            raise bad_body("neither `script` nor `modules` was given", "send `script`, or `modules` with `main`")
        if len(body.modules) > MAX_MODULES:
            raise Refused(ApiCode.TOO_LARGE, f"{len(body.modules)} modules are more than {MAX_MODULES}", "bundle them")
        modules = [checked_module(path, source) for path, source in body.modules.items()]
        main = _checked_main(body.main, modules)
    size = sum(len(module.source) for module in modules)
    if size > max_bytes:
        raise Refused(
            ApiCode.TOO_LARGE,
            f"the worker has {size:,} bytes, more than the {max_bytes:,} this node allows",
            "leave out what is not needed, or raise script_bytes",
        )
    return tuple(modules), main


def _checked_main(main: str | UnsetType, modules: Sequence[Module]) -> str:
    if main is UNSET:
        raise bad_body("`main` is missing", "with `modules`, `main` names the one that exports the handlers")
    for module in modules:
        if module.path == main:
            if module.kind is not ModuleKind.ESM:
                raise bad_body(f"`main` is {main}, which is not JavaScript", "name a .js, .mjs or .ts module")
            return main
    raise bad_body(f"`main` is {main[:80]!r}, which is not one of `modules`", _main_hint(main, modules))


def _main_hint(main: str, modules: Sequence[Module]) -> str:
    return nearest(main, {module.path: None for module in modules if module.kind is ModuleKind.ESM})[:300]


def checked_module(path: str, value: str | Binary) -> Module:
    checked_path(path)
    kind = KINDS.get(_extension(path))
    if isinstance(value, Binary) and value.kind:
        kind = _checked_kind(path, value.kind)
    if kind is None:
        raise bad_body(f"module {path!r} has no extension that says what it is", f"use one of {', '.join(KINDS)}")
    if isinstance(value, str):
        if kind in (ModuleKind.DATA, ModuleKind.WASM):
            raise bad_body(f"module {path!r} is binary", 'send it as {"base64": "…"}')
        return Module(path, kind, value.encode())
    try:
        source = base64.b64decode(value.base64, validate=True)
        if kind not in (ModuleKind.DATA, ModuleKind.WASM):
            source.decode()
    except (binascii.Error, ValueError) as error:
        what = "UTF-8" if isinstance(error, UnicodeDecodeError) else "base64"
        raise bad_body(f"module {path!r} is not {what}: {error}") from None
    return Module(path, kind, source)


def _checked_kind(path: str, kind: str) -> ModuleKind:
    try:
        return ModuleKind(kind)
    except ValueError:
        raise bad_body(f"module {path!r} has the kind {kind[:80]!r}", f"use one of {', '.join(ModuleKind)}") from None


def checked_path(path: str) -> str:
    shown = repr(path[:80])
    if not 0 < len(path) <= MAX_PATH:
        raise bad_body(f"module path {shown} is empty or longer than {MAX_PATH} characters")
    if FORBIDDEN_IN_PATH.search(path):
        raise bad_body(f"module path {shown} has a character no path may have", "leave out \\ : ? # % and controls")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise bad_body(f"module path {shown} is not a plain relative path", "write it like lib/shared.js")
    return path


def _extension(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[-1].lower() if "." in name[1:] else ""


def checked_env(env: Mapping[str, Json]) -> dict[str, Json]:
    if len(env) > MAX_VARS:
        raise Refused(ApiCode.TOO_MANY_VARS, f"`env` has {len(env)} variables, more than {MAX_VARS}", "join some")
    for name, value in env.items():
        if not IDENTIFIER.fullmatch(name) or len(name) > MAX_PATH:
            raise bad_body(f"`env` has a variable named {name[:80]!r}", "use letters, digits, _ and $, no digit first")
        size = len(value.encode()) if isinstance(value, str) else len(msgspec.json.encode(value))
        if size > MAX_VAR_BYTES:
            raise Refused(
                ApiCode.VAR_TOO_BIG,
                f"`env.{name}` has {size:,} bytes, more than {MAX_VAR_BYTES:,}",
                "put large values into a module",
            )
    return dict(env)


def checked_limits(wanted: WantedLimits, settings: Settings) -> Limits:
    """What a version may use: what it asks for within the node's caps, the node's defaults for the rest."""
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
    """Those that are named change, the others stay."""
    known = dict.fromkeys(Switches.__struct_fields__)
    for name, value in wanted.items():
        if name not in known:
            raise bad_body(f"unknown field `switches.{name[:80]}`", nearest(name, known))
        if not isinstance(value, bool):
            raise bad_body(f"`switches.{name}` is neither true nor false", "switches are off unless they are true")
    if wanted.get("allow_live_clock") and settings.worker_clock != "live":
        raise bad_body(
            "`switches.allow_live_clock` is not for workers of this node: such a clock can measure neighbours",
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
                f"`egress.{name}` cannot be used: {error}",
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
