"""KV in bulk: many entries, as a JSON array that is stored as a whole or not at all, or as lines that are stored as
they arrive; deleting many keys; and export, as lines.

Small bodies are decoded here. A job process decodes and checks all others and returns packed entries in a file, which
the store's own thread reads. So neither a large body nor one with millions of values blocks the event loop or fills its
memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from atoll.api.audit import AuditLog
from atoll.api.bodies import media_type, receive_json
from atoll.api.held import room_of
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, caller_of, json_answer
from atoll.api.work import WORK, offloaded
from atoll.bindings.kv import limits
from atoll.bindings.kv.pairs import (
    AS_LINES,
    DONE,
    LINES,
    PACK_KEYS,
    PACK_LINE,
    PACK_PAIRS,
    SHOW_LINE,
    BadBulk,
    Moment,
    PackedPairs,
    checked_keys,
    entry_of,
    line_of,
    raw_list,
)
from atoll.bindings.kv.store import KVStore, Listed, Space, StoredValue
from atoll.offload.jobs import Job, Result
from atoll.offload.spool import Spool

MAX_BULK = 100 * 1024 * 1024
GROUP = 500  # lines that are stored together
GROUP_BYTES = 8 * 1024 * 1024
MAX_LINE = 48 * 1024 * 1024  # a value of 25 MiB with JSON's escapes
LIGHT = 64 << 10  # bytes of any JSON that decode in a few milliseconds
LONG = 256 << 10  # bytes from which a job process handles a line or value
STEP = 100  # pairs that are handled before other tasks get a turn
EXPORTED = 64 << 10  # bytes of an export that are sent together
STORED_BEFORE = "the lines before it are stored"


class WrittenAnswer(msgspec.Struct):
    written: int


class DeletedAnswer(msgspec.Struct):
    deleted: int


class KvBulk:
    def __init__(self, store: KVStore, audit: AuditLog, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock

    async def put(self, request: Request) -> Response:
        space = await space_of(self._store, request)
        if media_type(request) == LINES:
            await self._audit.note(caller_of(request), "kv.bulk-put", space.namespace, "lines")
            return json_answer(WrittenAnswer(await self._put_lines(space, request)))
        with await receive_json(request, MAX_BULK, AS_LINES) as body:
            async with self._pairs(request, body) as pairs:
                await self._audit.note(caller_of(request), "kv.bulk-put", space.namespace, f"{len(pairs)} keys")
                await self._store.put(space, pairs)
                return json_answer(WrittenAnswer(len(pairs)))

    @asynccontextmanager
    async def _pairs(
        self, request: Request, body: Spool
    ) -> AsyncIterator[list[tuple[bytes, StoredValue]] | PackedPairs]:
        """The pairs of a body, checked."""
        if body.is_small and body.size <= LIGHT:
            yield await self._light_pairs(body.data)
            return
        with await checked_job(request, PACK_PAIRS, body, {"now": self._clock()}) as result:
            yield PackedPairs(result.buffer())

    async def _light_pairs(self, data: bytes) -> list[tuple[bytes, StoredValue]]:
        at, found = Moment(self._clock()), []
        try:
            for number, raw in enumerate(raw_list(data, "pairs", AS_LINES)):
                pair = entry_of(raw, f"pair {number}", "nothing was stored", at)
                if pair is not None:
                    found.append(pair)
                if number % STEP == 0:
                    await asyncio.sleep(0)
        except BadBulk as error:
            raise bad_body(str(error), error.hint) from None
        return found

    async def _put_lines(self, space: Space, request: Request) -> int:
        """Store lines as they arrive. An invalid line ends the import; the lines before it are stored."""
        group: list[tuple[bytes, StoredValue]] = []
        written = size = 0
        try:
            async for number, line in lines_of(request):
                pair = await self._line(request, line, f"line {number}")
                if pair is None:
                    continue
                group.append(pair)
                size += len(pair[1].value)
                if len(group) == GROUP or size >= GROUP_BYTES:
                    full, group, size = group, [], 0
                    await self._store.put(space, full)
                    written += len(full)
        finally:
            if group:
                await self._store.put(space, group)
        return written + len(group)

    async def _line(self, request: Request, line: bytes, where: str) -> tuple[bytes, StoredValue] | None:
        if len(line) <= LIGHT:
            try:
                return entry_of(line, where, STORED_BEFORE, Moment(self._clock(), 0))
            except BadBulk as error:
                raise bad_body(str(error), error.hint) from None
        args = {"where": where, "hint": STORED_BEFORE, "now": self._clock()}
        with await checked_job(request, PACK_LINE, line, args) as result:
            return next(iter(PackedPairs(await result.read())), None)

    async def delete(self, request: Request) -> Response:
        space = await space_of(self._store, request)
        with await receive_json(request, MAX_BULK) as body:
            keys = await self._keys(request, body)
        await self._audit.note(caller_of(request), "kv.bulk-delete", space.namespace, f"{len(keys)} keys")
        for first in range(0, len(keys), GROUP):  # in steps: other writes run in between
            await self._store.delete(space, keys[first : first + GROUP])
        return json_answer(DeletedAnswer(len(keys)))

    async def _keys(self, request: Request, body: Spool) -> list[bytes]:
        if body.is_small and body.size <= LIGHT:
            try:
                return checked_keys(body.data)
            except BadBulk as error:
                raise bad_body(str(error), error.hint) from None
        with await checked_job(request, PACK_KEYS, body, {}) as result:
            keys: list[bytes] = msgspec.msgpack.decode(await result.read(1))
            return keys

    # An export

    async def export(self, request: Request) -> Response:
        space = await space_of(self._store, request)
        return StreamingResponse(self._exported(request, space), headers=HEADERS, media_type=LINES)

    async def _exported(self, request: Request, space: Space) -> AsyncIterator[bytes]:
        """Every entry as a line. Entries that change meanwhile may or may not be included."""
        after: bytes | None = b""
        batch = bytearray()
        while after is not None:
            page = await self._store.list(space, b"", after, limits.MAX_KEYS, self._clock())
            for listed in page.keys:
                [entry] = await self._store.get(space, [listed.key], self._clock())
                if entry is not None and len(entry.value) > LONG:
                    async for piece in _long_line(request, listed, entry):
                        yield bytes(batch) + piece
                        batch.clear()
                elif entry is not None:
                    batch += line_of(listed.key, entry)
                if len(batch) >= EXPORTED:
                    yield bytes(batch)
                    batch.clear()
                    await asyncio.sleep(0)
            after = page.after
            await asyncio.sleep(0)
        if batch:
            yield bytes(batch)


async def checked_job(request: Request, job: Job, data: bytes | Spool, args: dict[str, object]) -> Result:
    """Let a job read a body; Refused if the job rejects it. The caller closes the result."""
    if isinstance(data, Spool) and data.is_small:
        data = data.data
    if isinstance(data, Spool):
        result = await offloaded(request, job, data, args)
    else:  # more of the body may follow: watching for a disconnect would read, and lose, a part of it
        result = await request.scope[WORK].offload.run(job, data, args, tenant=caller_of(request).tenant)
    try:
        if await result.read(0, 1) != DONE:
            message, hint = msgspec.json.decode(await result.read(1), type=tuple[str, str])
            raise bad_body(message, hint)
    except BaseException:
        result.close()
        raise
    return result


async def _long_line(request: Request, listed: Listed, entry: StoredValue) -> AsyncIterator[bytes]:
    args = {"key": listed.key, "metadata": entry.metadata, "expires_at": entry.expires_at}
    work, tenant = request.scope[WORK], caller_of(request).tenant
    with await work.offload.run(SHOW_LINE, entry.value, args, tenant=tenant) as result:
        async for piece in result.pieces():
            yield piece


async def lines_of(request: Request) -> AsyncIterator[tuple[int, bytes]]:
    """The lines of a body with their numbers, without empty ones. Held bytes count against the tenant."""
    room, tenant = room_of(request), caller_of(request).tenant
    number, size = 1, 0
    parts: list[bytes] = []  # chunks of the unfinished line; joined once, at its end
    try:
        async for chunk in request.stream():
            first, *others = chunk.split(b"\n")
            room.take(tenant, len(first))
            parts.append(first)
            size += len(first)
            for begun in others:
                line = b"".join(parts)
                if line.strip():
                    yield number, line
                room.give_back(tenant, size)
                number, parts, size = number + 1, [begun], len(begun)
                room.take(tenant, size)
                if number % GROUP == 0:
                    await asyncio.sleep(0)
            if size > MAX_LINE:
                raise Refused(ApiCode.TOO_LARGE, f"line {number} is longer than {MAX_LINE:,} bytes")
            await asyncio.sleep(0)
        rest = b"".join(parts)
        if rest.strip():
            yield number, rest
    finally:
        room.give_back(tenant, size)


async def space_of(store: KVStore, request: Request) -> Space:
    space = Space(caller_of(request).tenant, request.path_params["namespace"])
    if not await store.exists(space):
        raise Refused(
            ApiCode.NOT_FOUND,
            f"there is no namespace `{space.namespace[:128]}`",
            "GET /api/kv lists the namespaces; POST /api/kv creates one",
        )
    return space
