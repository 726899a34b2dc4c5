"""A deploy as a multipart form: the part `metadata` holds the fields as JSON, every other part is a module.

    curl -X PUT …/api/workers/hello -H "X-Atoll-Tenant: default" -F 'metadata={"main_module":"worker.js"}' \\
        -F 'worker.js=@worker.js;type=application/javascript+module' -F 'logo.bin=@logo.bin'

The name of a part is the path of its module. Its content type gives the kind of module, with the names that
Cloudflare's upload uses; if the content type is unknown, the extension decides. `main_module` is accepted for `main`,
bindings of the types `plain_text` and `json` for variables, and `secret_text` for secrets.

Pure, and quick for any input: one regular expression finds the parts, whatever bytes are between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from python_multipart.multipart import parse_options_header

from atoll.api.refusals import Refused, bad_body
from atoll.control.checks.body import MAX_MODULES, parse_body
from atoll.control.checks.code import Unpacked, checked_source, too_many_modules, unpacked
from atoll.workers import KIND_OF_ENDING, Module, ModuleKind

METADATA = "metadata"
SOURCE_MAP = "application/source-map"
MAX_HEAD = 1024  # bytes of the headers of a part

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


class Part(NamedTuple):
    name: str
    is_file: bool
    media: str
    content: bytes


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
            modules[part.name] = checked_source(part.name, part.content, _kind_of(part))
    if fields is None:
        raise bad_body("the form has no part `metadata`", 'add -F \'metadata={"main_module": "worker.js"}\'')
    body = unpacked(parse_body(msgspec.json.encode(fields)))
    return msgspec.structs.replace(
        body, code=tuple(modules.values()) if modules else msgspec.UNSET, maps=maps or msgspec.UNSET
    )


def form_parts(raw: bytes, boundary: bytes) -> Iterator[Part]:
    """The parts of a multipart body. Raises Refused if the body is not multipart."""
    begin, is_first = 0, True
    border = re.compile(rb"(?:\A|\r\n)--" + re.escape(boundary) + rb"(?:(--)|[ \t]*\r\n)")
    for found in border.finditer(raw):
        if not is_first:
            yield _part(raw[begin : found.start()])
        elif raw[: found.start()].strip(b"\r\n"):
            raise _no_form("it does not begin with its boundary")
        if found[1]:
            return
        # The line break before the next boundary may be the one that ends this boundary: an empty part.
        begin, is_first = found.end(), False
    raise _no_form("it does not begin with its boundary" if is_first else "it ends before its last boundary")


def _part(data: bytes) -> Part:
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end < 0:
        raise _no_form(f"the headers of a part have no end within {MAX_HEAD} bytes")
    headers = dict(_header(line) for line in data[:end].split(b"\r\n"))
    disposition, options = parse_options_header(headers.get(b"content-disposition"))
    if disposition != b"form-data" or b"name" not in options:
        raise _no_form("a part has no Content-Disposition with a name")
    try:
        name = options[b"name"].decode()
    except UnicodeDecodeError:
        raise _no_form("the name of a part is not UTF-8") from None
    media = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
    return Part(name, b"filename" in options, media, data[end + 4 :])


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _no_form(reason: str) -> Refused:
    return bad_body(f"the body is not a multipart form: {reason}", "send it with curl -F")


def _kind_of(part: Part) -> str:
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
