"""A deploy as a multipart form: the part `metadata` has the fields as JSON, every other part is a module.

    curl -X PUT …/api/workers/hello -H "X-Atoll-Tenant: default" -F 'metadata={"main_module":"worker.js"}' \\
        -F 'worker.js=@worker.js;type=application/javascript+module' -F 'logo.bin=@logo.bin'

The name of a part is the path of its module. Its content type says what it is, in the words that Cloudflare's upload
uses; when it says nothing known the extension does. `main_module` may stand for `main`, and bindings of the types
`plain_text` and `json` for variables, `secret_text` for secrets.

A form is the one kind of body that a page of another site could send. So it must come with a header that no form can
have: Authorization or X-Atoll-Tenant.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from atoll.control.check import KINDS, MAX_MODULES, DeployBody, bad_body, parse_body
from atoll.control.refusals import ApiCode, Refused
from atoll.workers import ModuleKind

METADATA = "metadata"
MEDIA_TYPE = "multipart/form-data"
SOURCE_MAP = "application/source-map"
HEADERS_NO_FORM_HAS = ("authorization", "x-atoll-tenant")

# Bindings that are values: where each has it, and the field of a JSON body that holds such values.
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


async def read_upload(request: Request, limit: int, hint: str) -> DeployBody:
    """The deploy that a multipart request asks for."""
    if not any(name in request.headers for name in HEADERS_NO_FORM_HAS):
        raise Refused(
            ApiCode.MEDIA_TYPE,
            "a multipart deploy needs a header that no form of a web page can send",
            "add Authorization: Bearer …, or X-Atoll-Tenant: default",
        )
    parser = MultiPartParser(
        request.headers,
        _bounded(request, limit, hint),
        max_files=MAX_MODULES + 1,
        max_fields=MAX_MODULES + 1,
        max_part_size=limit,
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        if isinstance(error, MultiPartException) and error.message.startswith("Too many"):
            raise _too_many(f"more than {MAX_MODULES} parts") from None
        reason = error.message if isinstance(error, MultiPartException) else "it names no boundary"
        raise bad_body(f"the body is not a multipart form: {reason}", "send it with curl -F") from None
    try:
        parts = form.multi_items()
        if len(parts) > MAX_MODULES + 1:
            raise _too_many(f"{len(parts)} parts, more than {MAX_MODULES}")
        return await _body_of(parts)
    finally:
        await form.close()  # large parts are in temporary files


def _too_many(what: str) -> Refused:
    return Refused(ApiCode.TOO_LARGE, f"the form has {what}", "bundle them")


async def _bounded(request: Request, limit: int, hint: str) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refused(ApiCode.TOO_LARGE, f"the body is larger than {limit:,} bytes", hint)
        yield chunk


async def _body_of(parts: list[tuple[str, UploadFile | str]]) -> DeployBody:
    fields: dict[str, Any] | None = None
    modules: dict[str, Any] = {}
    maps: dict[str, str] = {}
    for name, part in parts:
        content = await part.read() if isinstance(part, UploadFile) else part.encode()
        if name == METADATA:
            fields = _metadata(content)
            continue
        if isinstance(part, str):  # decoded already, and perhaps not as it was meant
            raise bad_body(f"the part {name[:80]!r} is no file", f"send a module with its file name: -F {name[:80]}=@…")
        media = (part.content_type or "").split(";")[0].strip().lower()
        if name in modules or name in maps:
            raise bad_body(f"two parts are named {name[:80]!r}", "the name of a part is the path of its module")
        if media == SOURCE_MAP:
            maps[name.removesuffix(".map")] = content.decode("utf-8", "replace")
        else:
            modules[name] = _module(name, media, content)
    if fields is None:
        raise bad_body("the form has no part `metadata`", 'add -F \'metadata={"main_module": "worker.js"}\'')
    if modules:
        fields["modules"] = modules
    if maps:
        fields["source_maps"] = maps
    return parse_body(msgspec.json.encode(fields))


def _module(path: str, media: str, content: bytes) -> dict[str, str]:
    """As `modules` of a JSON body would have it. What the extension says needs no saying."""
    value = {"base64": base64.b64encode(content).decode()}
    extension = "." + path.rsplit(".", 1)[-1].lower()
    kind = KIND_OF_TYPE.get(media)
    if media == "application/octet-stream" and extension in KINDS:
        kind = None  # what curl says of a file that it does not know
    if kind is not None:
        value["kind"] = kind.value
    return value


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
    """A binding that is a value becomes a variable or a secret."""
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
