"""A deploy as a multipart form: the part `metadata` holds the fields as JSON, every other part is a module.

    curl -X PUT …/api/workers/hello -H "X-Atoll-Tenant: default" -F 'metadata={"main_module":"worker.js"}' \\
        -F 'worker.js=@worker.js;type=application/javascript+module' -F 'logo.bin=@logo.bin'

The name of a part is the path of its module. Its content type gives the kind of module, with the names that
Cloudflare's upload uses; if the content type is unknown, the extension decides. `main_module` is accepted for `main`,
bindings of the types `plain_text` and `json` for variables, and `secret_text` for secrets.

Pure. api/multipart.py finds the parts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from atoll.api.multipart import Part, form_parts
from atoll.api.refusals import bad_body
from atoll.control.checks.body import MAX_MODULES, parse_body
from atoll.control.checks.code import Unpacked, checked_source, too_many_modules, unpacked
from atoll.workers import KIND_OF_ENDING, Module, ModuleKind

METADATA = "metadata"
SOURCE_MAP = "application/source-map"

# Bindings that are values: the field with the value, and the field of a JSON body that holds such values.
VALUES = {"plain_text": ("text", "env"), "json": ("json", "env"), "secret_text": ("text", "secrets")}

KIND_OF_TYPE: dict[str, ModuleKind] = {
    "application/javascript+module": ModuleKind.ESM,
    "application/javascript": ModuleKind.ESM,
    "text/javascript": ModuleKind.ESM,
    "application/json": ModuleKind.JSON,
    "text/plain": ModuleKind.TEXT,
    "text/html": ModuleKind.TEXT,
    "application/octet-stream": ModuleKind.DATA,
    "application/wasm": ModuleKind.WASM,
}


def form_body(raw: bytes, boundary: bytes) -> Unpacked:
    """The deploy in a form."""
    fields: dict[str, Any] | None = None
    modules: dict[str, Module] = {}
    maps: dict[str, bytes] = {}
    for count, part in enumerate(form_parts(raw, boundary)):
        if count > MAX_MODULES:
            raise too_many_modules(f"the form has more parts than the limit of {MAX_MODULES}")
        if part.name == METADATA:
            fields = _metadata(part.content)
            continue
        shown = part.name[:80]
        if not part.is_file:
            raise bad_body(f"the part {shown!r} is not a file", f"send a module with its file name: -F {shown}=@…")
        if part.name in modules or part.name in maps:
            raise bad_body(f"two parts are named {shown!r}", "the name of a part is the path of its module")
        if part.media == SOURCE_MAP:
            maps[part.name.removesuffix(".map")] = part.content
        else:
            modules[part.name] = checked_source(part.name, part.content, kind_of_part(part))
    if fields is None:
        raise bad_body("the form has no part `metadata`", 'add -F \'metadata={"main_module": "worker.js"}\'')
    body = unpacked(parse_body(msgspec.json.encode(fields)))
    return msgspec.structs.replace(
        body, code=tuple(modules.values()) if modules else msgspec.UNSET, maps=maps or msgspec.UNSET
    )


def kind_of_part(part: Part) -> str:
    """The kind of module that a part declares; empty if the extension tells it."""
    extension = "." + part.name.rsplit(".", 1)[-1].lower()
    if part.media == "application/octet-stream" and extension in KIND_OF_ENDING:
        return ""  # curl's content type for unknown files
    kind = KIND_OF_TYPE.get(part.media)
    return kind.value if kind is not None else ""


def _metadata(content: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_body(f"`metadata` is not a JSON object: {error}") from None
    for name in ("modules", "script", "source_maps"):
        if name in fields:
            raise bad_body(f"`metadata` has `{name}`", "modules are the other parts of the form")
    if "main_module" in fields:
        fields["main"] = fields.pop("main_module")
    bindings = fields.get("bindings")
    if isinstance(bindings, list):
        fields["bindings"] = [entry for entry in bindings if _kind(entry) not in VALUES]
        for entry in bindings:
            if _kind(entry) in VALUES:
                _take_value(entry, fields)
    return fields


def _kind(entry: object) -> str:
    kind = entry.get("type") if isinstance(entry, dict) else None
    return kind if isinstance(kind, str) else ""


def _take_value(entry: dict[str, Any], fields: dict[str, Any]) -> None:
    """Turn a binding that is a value into a variable or a secret."""
    field, holds = VALUES[_kind(entry)]
    name = entry.get("name")
    if not isinstance(name, str) or field not in entry:
        raise bad_body(f"a binding of the type {_kind(entry)} has no `name` or no `{field}`")
    values = fields.setdefault(holds, {})
    if not isinstance(values, dict):
        raise bad_body(f"`{holds}` is not an object")
    if name in values:
        raise bad_body(f"`{name}` is given twice", "a name in `env` can mean one thing only")
    values[name] = entry[field]
