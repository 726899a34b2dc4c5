"""Objects over HTTP, for the control API and the S3 endpoint: headers, and bodies in pieces."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Mapping
from email.utils import formatdate, parsedate_to_datetime

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.bindings.r2.limits import EXPIRY, checked_http, fields_of
from atoll.bindings.r2.store import ContentReader, ContentUpload, StoredObject

PIECE = 256 << 10  # bytes that are read or written at once
HEADER_OF = {
    "contentType": "content-type",
    "contentLanguage": "content-language",
    "contentDisposition": "content-disposition",
    "contentEncoding": "content-encoding",
    "cacheControl": "cache-control",
}
FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # in the value of a header


def http_of_headers(headers: Headers) -> str:
    """The HTTP metadata that the headers of an upload give to an object."""
    fields: dict[str, str | int] = {name: headers[header] for name, header in HEADER_OF.items() if headers.get(header)}
    if (coding := fields.get("contentEncoding")) is not None:
        # `aws-chunked` is how the request was sent, not what the object is.
        kept = [each.strip() for each in str(coding).split(",") if each.strip().lower() != "aws-chunked"]
        fields.pop("contentEncoding")
        if kept:
            fields["contentEncoding"] = ",".join(kept)
    expires = http_time(headers.get("expires"))
    if expires is not None:
        fields[EXPIRY] = expires
    return checked_http(fields)


def http_time(text: str | None) -> int | None:
    """A date of a header in milliseconds since 1970; None if there is none, or none that can be read."""
    try:
        return None if not text else int(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def headers_of_http(stored: StoredObject) -> dict[str, str]:
    """The HTTP metadata of an object as headers."""
    fields = fields_of(stored.http)
    headers = {header: safe(fields[name]) for name, header in HEADER_OF.items() if name in fields}
    if EXPIRY in fields:
        headers["expires"] = http_date(fields[EXPIRY])
    return headers


def http_date(milliseconds: int) -> str:
    try:
        return formatdate(milliseconds / 1000, usegmt=True)
    except (ValueError, OverflowError):
        return formatdate(0, usegmt=True)


def safe(value: object) -> str:
    """A text as the value of a header: a worker may have stored any."""
    return FORBIDDEN.sub("", str(value)).encode("latin-1", "replace").decode("latin-1").strip()


async def receive_into(upload: ContentUpload, chunks: AsyncIterable[bytes]) -> None:
    """Write a body as it arrives. The sender gets credit only as fast as it is written."""
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if len(gathered) >= PIECE:
            await upload.write(bytes(gathered))
            gathered.clear()
    if gathered:
        await upload.write(bytes(gathered))


class ObjectResponse(Response):
    """The content of an object, sent as fast as the client takes it. Closes its reader."""

    def __init__(self, reader: ContentReader, headers: Mapping[str, str], status: int, first: bytes) -> None:
        super().__init__(status_code=status, headers=dict(headers))
        self._reader = reader
        self._first = first
        self.headers["content-length"] = str(reader.left + len(first))

    @classmethod
    async def begin(cls, reader: ContentReader, headers: Mapping[str, str], status: int = 200) -> ObjectResponse:
        """Read the first piece, so that a disk that fails is told by the status."""
        try:
            return cls(reader, headers, status, await reader.read(PIECE))
        except BaseException:
            reader.close()
            raise

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        reader = self._reader
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            piece = b"" if scope["method"] == "HEAD" else self._first
            while piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                piece = await reader.read(PIECE)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            reader.close()
