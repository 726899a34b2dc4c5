"""Contents of R2 in rows of PostgreSQL, and their way in and out of a node among several.

An upload is spooled into a file of at most one part, as for an S3 service (service/transfer.py), and sent from there.
Before anything is sent, a row says which node is at it: if that node ends, another one removes what it left.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from atoll.bindings.r2.rows import IN_ROWS, IN_SERVICE, ContentSegment
from atoll.bindings.r2.service.client import Payload
from atoll.bindings.r2.service.contents import ServiceContents
from atoll.bindings.r2.service.transfer import PART, HeldContents, ServiceReader, ServiceUpload
from atoll.errors import StorageFailed
from atoll.postgres.pool import Postgres

PIECE = 1 << 20  # of a row
READ = 256 << 10  # of a row at once: a slow reader holds no more
AT_ONCE = 3  # transfers into rows: the node has few connections
REMOVED = 64  # rows of one deletion

ADD = "INSERT INTO r2_pieces (file, number, body) VALUES ($1, $2, $3)"
FIND = "SELECT substring(body FROM $3 FOR $4) FROM r2_pieces WHERE file = $1 AND number = $2"
REMOVE = (
    "DELETE FROM r2_pieces WHERE (file, number) IN"
    " (SELECT file, number FROM r2_pieces WHERE file = ANY ($1) ORDER BY file, number LIMIT $2)"
)
MARK = "INSERT INTO r2_unfinished (file, session, place) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
SERVICE = (
    "INSERT INTO r2_service (folder, owner, keep_seconds) VALUES ($1, $2, $3)"
    " ON CONFLICT (one) DO UPDATE SET keep_seconds = excluded.keep_seconds RETURNING folder, owner"
)

OpenService = Callable[[str, Callable[[], bytes]], ServiceContents]
FindSegment = Callable[[int, int], Awaitable[ContentSegment]]


class RowContents:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def put(self, tenant: str, number: int, payload: Payload) -> None:
        await self._add(number, 0, payload)

    async def begin_parts(self, tenant: str, number: int) -> str:
        return "rows"

    async def put_part(self, tenant: str, number: int, upload: str, part: int, payload: Payload) -> str:
        await self._add(number, (part - 1) * (PART // PIECE), payload)
        return ""

    async def finish_parts(self, tenant: str, number: int, upload: str, etags: Sequence[str], size: int) -> None:
        """All rows are there."""

    async def _add(self, file: int, first: int, payload: Payload) -> None:
        async with self._turns, self._postgres.transaction() as connection:
            for offset in range(0, payload.size, PIECE):
                body = await payload.read(offset, min(PIECE, payload.size - offset))
                await connection.execute(ADD, file, first + offset // PIECE, body)

    async def drop_parts(self, number: int) -> None:
        """They are rows of the content, and go with it."""

    async def stream(self, tenant: str, number: int, start: int, end: int) -> RowStream:
        return RowStream(self._postgres, number, start, end)

    async def remove(self, numbers: Sequence[int]) -> None:
        more = 1
        while more:
            more = await self._postgres.run(REMOVE, list(numbers), REMOVED)

    def close(self) -> None:
        """Holds nothing open."""


class RowStream:
    def __init__(self, postgres: Postgres, file: int, start: int, end: int) -> None:
        self._postgres = postgres
        self._file = file
        self._at, self._end = start, end

    async def read(self) -> bytes:
        number, skipped = divmod(self._at, PIECE)
        length = min(READ, PIECE - skipped, self._end - self._at)
        if length <= 0:
            return b""
        body: bytes | None = await self._postgres.value(FIND, self._file, number, skipped + 1, length)
        if body is None or len(body) != length:
            raise StorageFailed("a content of R2 is not in PostgreSQL as a whole")
        self._at += length
        return body

    def close(self) -> None:
        """Holds nothing open."""


class SharedPlaces:
    """Where contents are. The service has one folder for all nodes."""

    def __init__(self, postgres: Postgres, open_service: OpenService | None) -> None:
        self._postgres = postgres
        self._open_service = open_service
        self._opening = asyncio.Lock()
        self._is_open = open_service is None
        self.all: dict[int, HeldContents] = {IN_ROWS: RowContents(postgres)}
        self.new = IN_ROWS if open_service is None else IN_SERVICE  # where new contents go

    async def open(self) -> Mapping[int, HeldContents]:
        """Raises StorageFailed while PostgreSQL cannot be asked for the folder."""
        if not self._is_open:
            async with self._opening:
                if not self._is_open:
                    await self._open()
        return self.all

    async def _open(self) -> None:
        assert self._open_service is not None
        names = secrets.token_hex(8), secrets.token_hex(16)
        row = await self._postgres.row(SERVICE, *names, 0)
        assert row is not None
        folder, owner = row["folder"], row["owner"].encode()
        service = self._open_service(folder, lambda: owner)
        await self._postgres.row(SERVICE, *names, int(service.keep_seconds))
        self.all[IN_SERVICE] = service
        self._is_open = True

    def of(self, place: int) -> HeldContents:
        found = self.all.get(place)
        if found is None:
            raise StorageFailed("content is in an S3 service, and this node has no settings for one (r2_service)")
        return found

    def close(self) -> None:
        for contents in self.all.values():
            contents.close()


def new_number() -> int:
    """The number of a new content. No two nodes ever draw the same."""
    return secrets.randbits(62)


class SharedUpload(ServiceUpload):
    """Content that is received by one of several nodes. Small content is in the row of its object."""

    def __init__(self, mark: Callable[[int], Awaitable[None]], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._mark = mark
        self._is_marked = False

    async def _finish_upload(self) -> None:
        await self._marked()
        await super()._finish_upload()

    async def _send_part(self) -> None:
        await self._marked()
        await super()._send_part()

    async def _marked(self) -> None:
        if not self._is_marked:
            self._is_sent = True  # from now on there may be a mark
            await self._mark(self._number)
            self._is_marked = True

    def _mark_file(self) -> None:
        """The row is the mark."""

    def _discard(self, number: int) -> None:
        self._files.post(self._files.discard, number)
        if self._is_sent:
            self._garbage.abandon(number)


class SharedReader(ServiceReader):
    """A part of a content that any node may have written."""

    def __init__(self, find: FindSegment, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._find_segment = find

    @property
    def left_in_file(self) -> int:
        return 0

    async def read(self, most: int) -> bytes:
        number = self._at // self._place.part_size + 1
        if self.left and (self._segment is None or self._segment[0] != number):
            self._segment = (number, await self._find_segment(self._place.content, number))
        return await super().read(most)
