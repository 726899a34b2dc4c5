"""Multipart forms. Pure, and quick for any input: one regular expression finds the parts, whatever bytes are between
them. Still it reads every byte, so a job process splits a form that is not small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from atoll.api.bodies import media_type, receive_body
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.work import offloaded
from atoll.offload.jobs import Buffer, Job

FORM: Final = "multipart/form-data"
MAX_BOUNDARY: Final = 70
MAX_HEAD: Final = 1024  # bytes of the headers of a part
SMALL: Final = 64 << 10  # bytes that are split in place
SPLIT: Final = Job("atoll.api.multipart:split_job")
# A form is the one kind of body that a page of another site could send, but not with one of these headers.
HEADERS_NO_FORM_HAS: Final = ("authorization", "x-atoll-tenant", "x-auth-key")


class Part(NamedTuple):
    name: str
    is_file: bool
    media: str
    content: bytes
    filename: str = ""


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
    filename = options.get(b"filename", b"").decode("utf-8", "replace")
    return Part(name, b"filename" in options, media, data[end + 4 :], filename)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _no_form(reason: str) -> Refused:
    return bad_body(f"the body is not a multipart form: {reason}", "send it with curl -F")


def boundary_of(request: Request) -> bytes:
    """The boundary of a form. Raises Refused for a form that a web page could have sent."""
    if not any(name in request.headers for name in HEADERS_NO_FORM_HAS):
        raise Refused(
            ApiCode.MEDIA_TYPE,
            "a multipart form needs a header that no form of a web page can send",
            "add Authorization: Bearer …, or X-Atoll-Tenant: default",
        )
    boundary = parse_options_header(request.headers["content-type"][:1000])[1].get(b"boundary", b"")
    if not 0 < len(boundary) <= MAX_BOUNDARY:
        raise bad_body("the body is not a multipart form: it names no boundary", "send it with curl -F")
    return boundary


async def read_parts(request: Request, limit: int, most: int) -> list[Part]:
    """The parts of a form of at most `limit` bytes and `most` parts."""
    if media_type(request) != FORM:
        raise bad_body("the body is not declared as multipart/form-data")
    boundary = boundary_of(request)
    with await receive_body(request, limit) as body:
        if body.is_small and body.size <= SMALL:
            return _few(body.data, boundary, most)
        data = body.data if body.is_small else body
        with await offloaded(request, SPLIT, data, {"boundary": boundary, "most": most}) as result:
            size = int.from_bytes(await result.read(0, 4))
            refused, heads = msgspec.json.decode(await result.read(4, size), type=tuple[str, list[PartHead]])
            if refused:
                raise bad_body(refused)
            offset, parts = 4 + size, []
            for head in heads:
                parts.append(Part(head.name, head.is_file, head.media, await result.read(offset, head.size)))
                offset += head.size
            return parts


class PartHead(msgspec.Struct):
    name: str
    is_file: bool
    media: str
    size: int


def split_job(data: Buffer, args: dict[str, Any]) -> list[bytes]:
    """In a job process: a refusal, or the heads of the parts, and their contents."""
    refused, parts = "", list[Part]()
    try:
        parts = _few(data[:], args["boundary"], args["most"])
    except Refused as error:
        refused = str(error)[:2000]
    heads = [PartHead(part.name, part.is_file, part.media, len(part.content)) for part in parts]
    head = msgspec.json.encode((refused, heads))
    return [len(head).to_bytes(4, "big"), head, *(part.content for part in parts)]


def _few(raw: bytes, boundary: bytes, most: int) -> list[Part]:
    parts: list[Part] = []
    for part in form_parts(raw, boundary):
        if len(parts) == most:
            raise bad_body(f"the form has more parts than the limit of {most}")
        parts.append(part)
    return parts
