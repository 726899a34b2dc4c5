"""KV over HTTP: the namespaces of a tenant, single values, and whole namespaces in and out.

A value travels as it is. In bulk an entry is a Pair: some of them as a JSON array, which is stored whole or not at all,
or any number as lines (NDJSON), which are stored as they come. An export is such lines, so that what came out of one
namespace goes into another.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from atoll.bindings.kv import limits
from atoll.bindings.kv.ops import NAME, shown
from atoll.bindings.kv.store import Entry, KVStore, Listed, Space
from atoll.control.audit import AuditLog
from atoll.control.boundary import (
    HEADERS,
    Query,
    Route,
    caller_of,
    json_answer,
    media_type,
    no_content,
    read_body,
    read_json,
)
from atoll.control.callers import Scope
from atoll.control.check import bad_body
from atoll.control.refusals import ApiCode, Refused
from atoll.errors import BindingRefused

MAX_PAIRS = 10_000
MAX_BULK = 100 * 1024 * 1024
LINES = "application/x-ndjson"
AS_LINES = f"send lines as {LINES} instead"
GROUP = 500  # lines that are stored together
GROUP_BYTES = 8 * 1024 * 1024
MAX_LINE = 48 * 1024 * 1024  # a value of 25 MiB with JSON's escapes
# A value is somebody's bytes: no browser may take it for a page of this host.
VALUE_HEADERS = HEADERS | {"content-type": "application/octet-stream", "content-disposition": "attachment"}
RAW = "application/octet-stream"
TEXT: dict[str, Any] = {"type": "string"}
PAGE = (
    Query("prefix", "Only keys that begin so", TEXT),
    Query("limit", "How many", {"type": "integer", "minimum": 1, "maximum": limits.MAX_KEYS}),
    Query("cursor", "Where the answer before ended", TEXT),
)
PUT_QUERY = (
    Query("expiration", "Seconds since 1970", {"type": "integer"}),
    Query("expiration_ttl", "Seconds from now", {"type": "integer", "minimum": limits.MIN_TTL}),
    Query("metadata", "JSON", TEXT),
)


class NewNamespace(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class NamespaceAnswer(msgspec.Struct):
    name: str
    created_at: str


class NamespacesAnswer(msgspec.Struct):
    namespaces: list[NamespaceAnswer]


class SizedNamespaceAnswer(msgspec.Struct):
    name: str
    created_at: str
    keys: int
    bytes: int


class KeysAnswer(msgspec.Struct, omit_defaults=True):
    keys: list[dict[str, Any]]
    cursor: str = ""


class Pair(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One entry in bulk. `base64` tells that the value is bytes which are no text."""

    key: str
    value: str
    base64: bool = False
    expiration: int | None = None
    expiration_ttl: int | None = None
    metadata: Any = None


class WrittenAnswer(msgspec.Struct):
    written: int


class DeletedAnswer(msgspec.Struct):
    deleted: int


class KvApi:
    def __init__(self, store: KVStore, audit: AuditLog, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        one, value = "/api/kv/{namespace}", "/api/kv/{namespace}/values/{key:path}"
        gives, many = NamespaceAnswer, list[Pair]
        return [
            Route("GET", "/api/kv", self.namespaces, read, "The namespaces of a tenant", gives=NamespacesAnswer),
            Route("POST", "/api/kv", self.create, change, "Make one", takes=NewNamespace, gives=gives, status=201),
            Route("GET", one, self.measure, read, "How much is in it", gives=SizedNamespaceAnswer),
            Route("DELETE", one, self.drop, change, "Remove it with all that is in it", status=204),
            Route("GET", f"{one}/keys", self.keys, read, "Its keys", gives=KeysAnswer, query=PAGE),
            Route("GET", value, self.get, read, "A value as it is", media="application/octet-stream"),
            Route("PUT", value, self.put, change, "Store the body under a key", status=204, query=PUT_QUERY, raw=RAW),
            Route("DELETE", value, self.delete, change, "Remove a key", status=204),
            Route("POST", f"{one}/bulk", self.put_many, change, "Store many", takes=many, gives=WrittenAnswer),
            Route("POST", f"{one}/bulk/delete", self.delete_many, change, "Remove many", list[str], DeletedAnswer),
            Route("GET", f"{one}/export", self.export, read, "All of it, a line each", media=LINES),
        ]

    # Namespaces

    async def namespaces(self, request: Request) -> Response:
        found = await self._store.namespaces(caller_of(request).tenant)
        return json_answer(NamespacesAnswer([NamespaceAnswer(name, iso_seconds(at)) for name, at in found]))

    async def create(self, request: Request) -> Response:
        body = decoded(await read_json(request), NewNamespace)
        if not NAME.fullmatch(body.name):
            raise bad_body(f"`name` is {body.name!r:.80}", "use up to 128 letters, digits, dots, dashes and _")
        now, space = self._clock(), Space(caller_of(request).tenant, body.name)
        taken = Refused(ApiCode.NAME_TAKEN, f"there is a namespace `{body.name}` already")
        if await self._store.exists(space):
            raise taken
        await self._audit.note(caller_of(request), "kv.create", body.name)
        if not await self._store.create(space, now):
            raise taken
        answer = NamespaceAnswer(body.name, iso_seconds(now))
        return json_answer(answer, status=201, headers={"location": f"/api/kv/{body.name}"})

    async def measure(self, request: Request) -> Response:
        space = await self._space(request)
        size = await self._store.measure(space)
        found = await self._store.namespaces(space.tenant)
        [created_at] = [at for name, at in found if name == space.namespace]
        return json_answer(SizedNamespaceAnswer(space.namespace, iso_seconds(created_at), size.keys, size.bytes))

    async def drop(self, request: Request) -> Response:
        space = await self._space(request)
        await self._audit.note(caller_of(request), "kv.drop", space.namespace)
        await self._store.drop(space)
        return no_content()

    # Single values

    async def keys(self, request: Request) -> Response:
        asked = request.query_params
        page = await self._store.list(
            await self._space(request),
            limits.checked_prefix(asked.get("prefix")),
            limits.checked_cursor(asked.get("cursor")),
            limits.checked_limit(asked.get("limit")),
            self._clock(),
        )
        keys = [shown(*listed) for listed in page.keys]
        return json_answer(KeysAnswer(keys, "" if page.after is None else limits.cursor_of(page.after)))

    async def get(self, request: Request) -> Response:
        key = request.path_params["key"]
        [entry] = await self._store.get(await self._space(request), [limits.checked_key(key)], self._clock())
        if entry is None:
            raise Refused(ApiCode.NOT_FOUND, f"there is no key `{key[:200]}`", "GET …/keys lists them")
        headers = dict(VALUE_HEADERS)
        if entry.expires_at is not None:
            headers["x-atoll-expiration"] = str(entry.expires_at)
        if entry.metadata is not None:
            headers["x-atoll-metadata"] = json.dumps(json.loads(entry.metadata))  # in ASCII
        return Response(entry.value, headers=headers)

    async def put(self, request: Request) -> Response:
        space, asked = await self._space(request), request.query_params
        key = limits.checked_key(request.path_params["key"])
        expires_at = limits.checked_expiry(asked.get("expiration_ttl"), asked.get("expiration"), self._clock())
        metadata = limits.checked_metadata(asked.get("metadata"))
        value = await read_body(request, limits.MAX_VALUE, "a value has 25 MiB at most")
        await self._audit.note(caller_of(request), "kv.put", space.namespace, key.decode())
        await self._store.put(space, [(key, Entry(value, metadata, expires_at))])
        return no_content()

    async def delete(self, request: Request) -> Response:
        space, key = await self._space(request), limits.checked_key(request.path_params["key"])
        await self._audit.note(caller_of(request), "kv.delete", space.namespace, key.decode())
        await self._store.delete(space, [key])
        return no_content()

    # Many

    async def put_many(self, request: Request) -> Response:
        space = await self._space(request)
        if media_type(request) == LINES:
            await self._audit.note(caller_of(request), "kv.bulk-put", space.namespace, "lines")
            return json_answer(WrittenAnswer(await self._put_lines(space, request)))
        pairs = decoded(await read_json(request, MAX_BULK, AS_LINES), list[Pair])
        if len(pairs) > MAX_PAIRS:
            raise bad_body(f"{len(pairs)} pairs are more than {MAX_PAIRS}", AS_LINES)
        entries = [self._entry(pair, f"pair {i}") for i, pair in enumerate(pairs)]
        await self._audit.note(caller_of(request), "kv.bulk-put", space.namespace, f"{len(pairs)} keys")
        await self._store.put(space, entries)
        return json_answer(WrittenAnswer(len(pairs)))

    async def _put_lines(self, space: Space, request: Request) -> int:
        """Store lines as they come. One that cannot be ends it; those before it are stored."""
        group: list[tuple[bytes, Entry]] = []
        written = size = 0
        try:
            async for number, line in lines_of(request):
                pair = decoded(line, Pair, f"line {number}")
                if self._has_expired(pair):
                    continue
                key, entry = self._entry(pair, f"line {number}", "the lines before it are stored", soonest=0)
                group.append((key, entry))
                size += len(entry.value)
                if len(group) == GROUP or size >= GROUP_BYTES:
                    full, group, size = group, [], 0
                    await self._store.put(space, full)
                    written += len(full)
        finally:
            if group:
                await self._store.put(space, group)
        return written + len(group)

    def _has_expired(self, pair: Pair) -> bool:
        """Whether its time is over: an export is a day old when it is read back."""
        return pair.expiration_ttl is None and pair.expiration is not None and 0 < pair.expiration <= self._clock()

    async def delete_many(self, request: Request) -> Response:
        keys = decoded(await read_json(request, MAX_BULK), list[str])
        if len(keys) > MAX_PAIRS:
            raise bad_body(f"{len(keys)} keys are more than {MAX_PAIRS}", "send them in parts")
        space, checked = await self._space(request), [limits.checked_key(key) for key in keys]
        await self._audit.note(caller_of(request), "kv.bulk-delete", space.namespace, f"{len(keys)} keys")
        await self._store.delete(space, checked)
        return json_answer(DeletedAnswer(len(keys)))

    async def export(self, request: Request) -> Response:
        return StreamingResponse(self._exported(await self._space(request)), headers=HEADERS, media_type=LINES)

    async def _exported(self, space: Space) -> AsyncIterator[bytes]:
        """Every entry as a line. What changes meanwhile is in it or not; the rest is."""
        after: bytes | None = b""
        while after is not None:
            page = await self._store.list(space, b"", after, limits.MAX_KEYS, self._clock())
            for listed in page.keys:
                [entry] = await self._store.get(space, [listed.key], self._clock())
                if entry is not None:
                    yield _line(listed, entry)
            after = page.after

    def _entry(
        self, pair: Pair, where: str, hint: str = "nothing was stored", soonest: int = limits.MIN_TTL
    ) -> tuple[bytes, Entry]:
        """An entry of a bulk body, checked. `where` names it in the error; it may expire so many seconds from now."""
        try:
            key = limits.checked_key(pair.key)
            expires_at = limits.checked_expiry(pair.expiration_ttl, pair.expiration, self._clock(), soonest)
            metadata = limits.checked_metadata(_json_text(pair.metadata))
            value = base64.b64decode(pair.value, validate=True) if pair.base64 else pair.value.encode()
            return key, Entry(limits.checked_value(value), metadata, expires_at)
        except BindingRefused as error:
            raise bad_body(f"{where}: {str(error)[4:]}", hint) from None
        except (binascii.Error, ValueError):
            raise bad_body(f"{where}: the value is not base64", "leave out `base64` for text") from None

    async def _space(self, request: Request) -> Space:
        space = Space(caller_of(request).tenant, request.path_params["namespace"])
        if not await self._store.exists(space):
            raise Refused(
                ApiCode.NOT_FOUND,
                f"there is no namespace `{space.namespace[:128]}`",
                "GET /api/kv lists them, POST makes one",
            )
        return space


async def lines_of(request: Request) -> AsyncIterator[tuple[int, bytes]]:
    """The lines of a body with their numbers, without empty ones."""
    number, size = 1, 0
    parts: list[bytes] = []  # of the line that has not ended; joined once, however many chunks it has
    async for chunk in request.stream():
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        for begun in others:
            line = b"".join(parts)
            if line.strip():
                yield number, line
            number, parts, size = number + 1, [begun], len(begun)
        if size > MAX_LINE:
            raise Refused(ApiCode.TOO_LARGE, f"line {number} is longer than {MAX_LINE:,} bytes")
    rest = b"".join(parts)
    if rest.strip():
        yield number, rest


def decoded(content: bytes, shape: Any, where: str = "the body") -> Any:
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_body(f"{where} does not fit: {error}", "see docs/bindings/kv.md") from None


def _line(listed: Listed, entry: Entry) -> bytes:
    try:
        text, is_base64 = entry.value.decode(), False
    except UnicodeDecodeError:
        text, is_base64 = base64.b64encode(entry.value).decode(), True
    metadata = None if entry.metadata is None else msgspec.Raw(entry.metadata.encode())
    pair = Pair(listed.key.decode(), text, is_base64, entry.expires_at, None, metadata)
    return msgspec.json.encode(pair) + b"\n"


def _json_text(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def iso_seconds(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
