"""GET /api/backup: all data of the node, as a tar stream that is consistent while the node runs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of
from atoll.clock import iso_time
from atoll.config import Settings
from atoll.observe.backup import BackupManifest, copy_folder, tar_chunks, work_folder
from atoll.offload.threads import in_thread

NOTE = "last-backup.json"  # in the data folder
WITHOUT_LOGS = Query("logs", "`false` leaves out the logs of workers", {"enum": ["true", "false"]})


class BackupNote(msgspec.Struct):
    """A backup that was sent to its end."""

    at: str
    by: str  # the name of the token
    bytes: int


def last_backup(data: Path) -> BackupNote | None:
    try:
        return msgspec.json.decode((data / NOTE).read_bytes(), type=BackupNote)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


class TarResponse(StreamingResponse):
    """A streaming response with a cleanup that runs even if the client disconnects before the stream begins."""

    def __init__(
        self, chunks: AsyncIterator[bytes], headers: dict[str, str], end: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(chunks, headers=headers, media_type="application/x-tar")
        self._end = end

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._end()


class BackupApi:
    def __init__(self, settings: Settings, audit: AuditLog) -> None:
        self._data = settings.data
        self._is_here = settings.store == "sqlite"
        self._audit = audit
        self._busy = False  # one at a time: each takes as much disk space as the data

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/backup",
                self.backup,
                Scope.ADMIN,
                "All data of the node, as a tar file",
                query=(WITHOUT_LOGS,),
                is_node=True,
                media="application/x-tar",
            )
        ]

    async def backup(self, request: Request) -> Response:
        if not self._is_here:
            raise Refused(
                ApiCode.ONE_NODE,
                "the data of this node is in PostgreSQL, which a backup of the node would miss",
                "back up PostgreSQL with its own tools, such as pg_dump, and keep a copy of the file root-key",
            )
        logs = request.query_params.get("logs", "true")
        if logs not in ("true", "false"):
            raise bad_body(f"`logs` is {logs[:80]!r}", "use true or false")
        if self._busy:
            raise Refused(ApiCode.CONCURRENT, "another backup is in progress", "wait until it ends, then try again")
        self._busy = True
        work = None
        try:
            # Not a change, but all data leaves the node.
            await self._audit.note(caller_of(request), "node.backup", "node")
            work = await asyncio.to_thread(work_folder, self._data)
            manifest = await asyncio.to_thread(copy_folder, self._data, Path(work.name), logs=logs == "true")
        except BaseException:
            await self._end(work)
            raise
        name = time.strftime("atoll-%Y%m%d-%H%M%S.tar", time.gmtime(manifest.made_at))
        headers = HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
        chunks = self._sent(_chunks(Path(work.name), manifest), caller_of(request).name)
        return TarResponse(chunks, headers, lambda: self._end(work))

    async def _sent(self, chunks: AsyncIterator[bytes], by: str) -> AsyncIterator[bytes]:
        """Pass the chunks on, and note the backup once its last one is taken."""
        size = 0
        async for chunk in chunks:
            yield chunk
            size += len(chunk)
        note = msgspec.json.encode(BackupNote(iso_time(time.time() * 1000), by, size))
        await asyncio.to_thread((self._data / NOTE).write_bytes, note)

    async def _end(self, work: tempfile.TemporaryDirectory[str] | None) -> None:
        try:
            if work is not None:
                await in_thread(work.cleanup)  # deleting large files may take a while
        finally:
            self._busy = False


async def _chunks(folder: Path, manifest: BackupManifest) -> AsyncIterator[bytes]:
    chunks = tar_chunks(folder, manifest)
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
