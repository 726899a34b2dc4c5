"""The multipart form in which Cloudflare's tools upload a worker: `metadata` as JSON, and a file for each module.

Unknown fields of the metadata are ignored. A form that is not small is unpacked in a job process, like a native deploy
(checks/unpack.py), which also bounds the number of values in the metadata.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.requests import Request

from atoll.api.bodies import media_type, receive_body
from atoll.api.cloudflare import CloudflareRefusal
from atoll.api.multipart import FORM, Part, boundary_of, form_parts
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.work import offloaded
from atoll.control.checks.body import MAX_MODULES
from atoll.control.checks.code import checked_source, too_many_modules
from atoll.control.checks.form import METADATA, SOURCE_MAP, kind_of_part
from atoll.control.checks.unpack import FIELD_BYTES, MAX_VALUES, SMALL, count_values
from atoll.control.deploy.upload import STEP
from atoll.offload.jobs import Buffer, Job, Result
from atoll.workers import Module

UNPACK: Final = Job("atoll.control.cloudflare.forms:unpack_job", seconds=20)
FILES: Final = ("files", "files[]")  # the name of all parts in forms of SDKs: a file's own name is that of its module
NAMED: Final = " modules"  # no field of an upload: names and types of its modules, on their way from a job
PYTHON: Final = ("text/x-python", "text/x-python-requirement")


class UploadForm(Struct):
    """An uploaded worker. The fields of the metadata are unchecked JSON."""

    metadata: dict[str, Any]
    modules: list[Module] = []
    maps: dict[str, bytes] = {}


class SentModule(Struct):
    """A module of an upload that is one JSON object."""

    name: str
    content_type: str
    content_base64: str = ""


class SentUpload(Struct):
    modules: list[SentModule] = []


class UploadHead(Struct):
    """The result of the job process: a refusal, or the form without the bytes of its files, and their sizes."""

    refused: tuple[int, str, str] | None = None
    form: UploadForm | None = None
    sizes: list[int] = []


async def read_form(request: Request, limit: int) -> UploadForm:
    if media_type(request) != FORM:
        raise CloudflareRefusal(415, 10026, "a worker is uploaded as multipart/form-data", "deploy with wrangler")
    boundary = boundary_of(request)
    with await receive_body(request, limit, "see the setting script_bytes") as body:
        if body.is_small and len(body.data) <= SMALL:
            return unpacked_form(body.data, boundary)
        data = body.data if body.is_small else body
        with await offloaded(request, UNPACK, data, {"boundary": boundary}) as result:
            return await _brought_back(result)


async def read_json_upload(request: Request, limit: int) -> tuple[UploadForm, list[tuple[str, str]]]:
    """An upload as one JSON object, and the names and types of its modules."""
    with await receive_body(request, limit, "see the setting script_bytes") as body:
        if body.is_small and len(body.data) <= SMALL:
            form = unpacked_json(body.data)
        else:
            data = body.data if body.is_small else body
            with await offloaded(request, UNPACK, data, {"boundary": b""}) as result:
                form = await _brought_back(result)
    named: list[tuple[str, str]] = form.metadata.pop(NAMED)
    return form, named


def unpacked_json(raw: bytes) -> UploadForm:
    fields, modules, named = _fields(raw), dict[str, Module](), []
    sent = _sent_modules(fields.pop("modules", None))
    if len(sent) > MAX_MODULES:
        raise too_many_modules(f"`modules` has more entries than the limit of {MAX_MODULES}")
    for each in sent:
        path, shown = each.name.removeprefix("./"), each.name[:80]
        if path in modules:
            raise bad_body(f"two modules are named {shown!r}", "the name of a module is its path")
        try:
            content = base64.b64decode(each.content_base64, validate=True)
        except (binascii.Error, ValueError):
            raise bad_body(f"`content_base64` of the module {shown!r} is not base64") from None
        if each.content_type in PYTHON:
            raise CloudflareRefusal(400, 10021, f"{shown} is Python: Atoll runs JavaScript and WebAssembly")
        modules[path] = checked_source(path, content, kind_of_part(Part(each.name, True, each.content_type, b"")))
        named.append((each.name, each.content_type))
    if count_values(fields) > MAX_VALUES:
        raise Refused(ApiCode.TOO_LARGE, f"the body has more than {MAX_VALUES:,} values besides its modules")
    return UploadForm({**fields, NAMED: named}, list(modules.values()))


def _fields(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CloudflareRefusal(400, 10026, f"the body does not fit: {error}") from None


def _sent_modules(modules: Any) -> list[SentModule]:
    try:
        return msgspec.convert(modules or [], list[SentModule])
    except msgspec.ValidationError as error:
        raise bad_body(f"`modules` does not fit: {error}") from None


def unpacked_form(raw: bytes, boundary: bytes) -> UploadForm:
    form: UploadForm | None = None
    modules: dict[str, Module] = {}
    maps: dict[str, bytes] = {}
    for count, part in enumerate(form_parts(raw, boundary)):
        if count > MAX_MODULES:
            raise too_many_modules(f"the form has more parts than the limit of {MAX_MODULES}")
        if part.name == METADATA:
            if form is not None:
                raise bad_body("the form has two parts named `metadata`")
            form = UploadForm(_metadata(part))
            continue
        name = part.filename if part.name in FILES else part.name
        path, shown = name.removeprefix("./"), name[:80]  # wrangler names modules as they are imported
        if not part.is_file:
            raise bad_body(f"the part {shown!r} is not a file")
        if path in modules or path in maps:
            raise bad_body(f"two parts are named {shown!r}", "the name of a part is the path of its module")
        if part.media in PYTHON:
            raise CloudflareRefusal(400, 10021, f"{shown} is Python: Atoll runs JavaScript and WebAssembly")
        if part.media == SOURCE_MAP:
            maps[path.removesuffix(".map")] = part.content
        else:
            modules[path] = checked_source(path, part.content, kind_of_part(part._replace(name=path)))
    if form is None:
        raise bad_body("the form has no part `metadata`")
    return UploadForm(form.metadata, list(modules.values()), maps)


def _metadata(part: Part) -> dict[str, Any]:
    if len(part.content) > FIELD_BYTES:
        raise Refused(ApiCode.TOO_LARGE, f"`metadata` is larger than {FIELD_BYTES:,} bytes")
    try:
        fields = msgspec.json.decode(part.content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_body(f"`metadata` is not a JSON object: {error}") from None
    if count_values(fields) > MAX_VALUES:
        raise Refused(ApiCode.TOO_LARGE, f"`metadata` has more than {MAX_VALUES:,} values")
    return fields


def unpack_job(data: Buffer, args: dict[str, Any]) -> list[bytes]:
    """In a job process."""
    pieces: list[bytes] = []
    try:
        form = unpacked_form(data[:], args["boundary"]) if args["boundary"] else unpacked_json(bytes(data[:]))
        pieces = [*(module.source for module in form.modules), *form.maps.values()]
        bare = [msgspec.structs.replace(module, source=b"") for module in form.modules]
        head = UploadHead(
            form=UploadForm(form.metadata, bare, dict.fromkeys(form.maps, b"")), sizes=[*map(len, pieces)]
        )
    except Refused as error:
        head = UploadHead(refused=(int(error.reason), str(error)[:2000], error.hint[:2000]))
    encoded = msgspec.json.encode(head)
    return [len(encoded).to_bytes(4, "big"), encoded, *pieces]


async def _brought_back(result: Result) -> UploadForm:
    size = int.from_bytes(await result.read(0, 4))
    head = msgspec.json.decode(await result.read(4, size), type=UploadHead)
    if head.refused is not None:
        reason, message, hint = head.refused
        raise Refused(ApiCode(reason), message, hint)
    assert head.form is not None
    offset, copied, pieces = 4 + size, 0, []
    for length in head.sizes:
        pieces.append(await result.read(offset, length))
        offset, copied = offset + length, copied + length
        if copied >= STEP:
            copied = 0
            await asyncio.sleep(0)  # other tasks get a turn
    rest = iter(pieces)
    modules = [msgspec.structs.replace(module, source=next(rest)) for module in head.form.modules]
    return UploadForm(head.form.metadata, modules, {path: next(rest) for path in head.form.maps})
