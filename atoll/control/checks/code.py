"""The modules of a deploy: from text or base64 to checked bytes. Pure, like body.py.

Job processes unpack large deploys (unpack.py). They return an Unpacked body, whose modules are bytes already. Any other
body becomes Unpacked here.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType, structs

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.assets.rules import NO_WORKER, STUB
from atoll.config_file import nearest
from atoll.control.checks.body import MAX_MODULES, MAX_PATH, Binary, DeployBody
from atoll.workers import KIND_OF_ENDING, Module, ModuleKind

SCRIPT_PATH = "worker.js"  # the path of a single script in stack traces
CODE_FIELDS = ("script", "modules", "source_maps")  # fields with large values, which Unpacked replaces
MAX_HINTED = 50  # paths, and characters of each, that are compared with a mistyped path: comparing is quadratic
# A colon would look like a scheme, a backslash or a percent sign like another path, ? and # like the end of one.
FORBIDDEN_IN_PATH = re.compile(r"[\x00-\x1f\x7f\\:?#%]")


class Unpacked(DeployBody):
    """A deploy whose code is bytes: `code` replaces `script` and `modules`, `maps` replaces `source_maps`."""

    code: tuple[Module, ...] | UnsetType = UNSET
    maps: Mapping[str, bytes] | UnsetType = UNSET


def unpacked(body: DeployBody) -> Unpacked:
    """The same deploy, with checked bytes in place of text and base64."""
    if isinstance(body, Unpacked):
        return body
    code = tuple(_modules_of(body)) if body.script is not UNSET or body.modules is not UNSET else UNSET
    texts = body.source_maps
    maps = {path: text.encode() for path, text in texts.items()} if texts is not UNSET else UNSET
    fields = {name: getattr(body, name) for name in body.__struct_fields__ if name not in CODE_FIELDS}
    if body.script is not UNSET:
        fields["main"] = SCRIPT_PATH
    return Unpacked(**fields, code=code, maps=maps)


def _modules_of(body: DeployBody) -> list[Module]:
    if body.script is not UNSET:
        if body.modules is not UNSET or body.main is not UNSET:
            raise bad_body("`script` and `modules` were both given", "send `script`, or `modules` with `main`")
        return [Module(SCRIPT_PATH, ModuleKind.ESM, body.script.encode())]
    assert body.modules is not UNSET
    if len(body.modules) > MAX_MODULES:
        raise too_many_modules(f"`modules` has {len(body.modules)} entries, more than the limit of {MAX_MODULES}")
    return [checked_module(path, source) for path, source in body.modules.items()]


def too_many_modules(message: str) -> Refused:
    return Refused(ApiCode.TOO_LARGE, message, "bundle them")


def checked_code(body: Unpacked, max_bytes: int) -> tuple[tuple[Module, ...], str]:
    """The modules of a body and the path of the main one. A worker of assets alone has no code of its own."""
    if body.code is UNSET or not body.code:
        if body.assets is not UNSET and body.assets is not None:
            return (Module(NO_WORKER, ModuleKind.ESM, STUB),), NO_WORKER
        raise bad_body("neither `script` nor `modules` was given", "send `script`, or `modules` with `main`")
    main = _checked_main(body.main, body.code)
    size = sum(len(module.source) for module in body.code)
    if size > max_bytes:
        raise Refused(
            ApiCode.TOO_LARGE,
            f"the worker has {size:,} bytes, more than the {max_bytes:,} this node allows",
            "make the worker smaller, or raise the setting script_bytes",
        )
    return body.code, main


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
    paths = [each.path for each in modules if each.kind is ModuleKind.ESM and len(each.path) <= MAX_HINTED]
    return nearest(main[:MAX_HINTED], dict.fromkeys(paths[:MAX_HINTED]))[:300]


def checked_module(path: str, value: str | Binary) -> Module:
    if isinstance(value, str):
        kind = kind_of(path)
        if kind in (ModuleKind.DATA, ModuleKind.WASM):
            raise bad_body(f"module {path!r} is binary", 'send it as {"base64": "…"}')
        return Module(path, kind, value.encode())
    try:
        source = base64.b64decode(value.base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_body(f"module {path[:MAX_PATH]!r} is not base64: {error}") from None
    return checked_source(path, source, value.kind)


def checked_source(path: str, source: bytes, kind: str = "") -> Module:
    """A module from bytes. `kind` is given if the extension does not tell it."""
    found = kind_of(path, kind)
    if found not in (ModuleKind.DATA, ModuleKind.WASM):
        try:
            source.decode()
        except UnicodeDecodeError as error:
            raise bad_body(f"module {path!r} is not UTF-8: {error}") from None
    return Module(path, found, source)


def kind_of(path: str, kind: str = "") -> ModuleKind:
    checked_path(path)
    if kind:
        try:
            return ModuleKind(kind)
        except ValueError:
            words = ", ".join(ModuleKind)
            raise bad_body(f"module {path!r} has the kind {kind[:80]!r}", f"use one of {words}") from None
    found = KIND_OF_ENDING.get(_extension(path))
    if found is None:
        raise bad_body(f"module {path!r} has no known extension", f"use one of {', '.join(KIND_OF_ENDING)}")
    return found


def checked_path(path: str) -> str:
    shown = repr(path[:80])
    if not 0 < len(path) <= MAX_PATH:
        raise bad_body(f"module path {shown} is empty or longer than {MAX_PATH} characters")
    if FORBIDDEN_IN_PATH.search(path):
        raise bad_body(f"module path {shown} has a character that is not allowed", "leave out \\ : ? # % and controls")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise bad_body(f"module path {shown} is not a plain relative path", "write it like lib/shared.js")
    return path


def _extension(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[-1].lower() if "." in name[1:] else ""


def code_bytes(body: Unpacked) -> list[bytes]:
    """The large parts of a deploy: modules, then maps."""
    modules = [module.source for module in body.code] if body.code is not UNSET else []
    return modules + (list(body.maps.values()) if body.maps is not UNSET else [])


def without_code(body: Unpacked) -> Unpacked:
    """The deploy with empty bytes in place of its code."""
    code = tuple(structs.replace(module, source=b"") for module in body.code) if body.code is not UNSET else UNSET
    maps = dict.fromkeys(body.maps, b"") if body.maps is not UNSET else UNSET
    return structs.replace(body, code=code, maps=maps)


def with_code(body: Unpacked, pieces: Sequence[bytes]) -> Unpacked:
    """The deploy with the code that `without_code` removed."""
    rest = iter(pieces)
    code = tuple(structs.replace(each, source=next(rest)) for each in body.code) if body.code is not UNSET else UNSET
    maps = {path: next(rest) for path in body.maps} if body.maps is not UNSET else UNSET
    return structs.replace(body, code=code, maps=maps)
