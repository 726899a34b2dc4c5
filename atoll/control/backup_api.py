"""GET /api/backup: everything the node keeps, as a tar stream that is consistent though the node runs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.control.audit import AuditLog
from atoll.control.boundary import HEADERS, Query, Route, caller_of
from atoll.control.callers import Scope
from atoll.control.check import bad_body
from atoll.control.refusals import ApiCode, Refused
from atoll.observe.backup import Manifest, copy_folder, tar_chunks, work_folder

WITHOUT_LOGS = Query("logs", "`false` leaves out the logs of workers", {"enum": ["true", "false"]})


class TarResponse(StreamingResponse):
    """A stream after which something must be done, though the client may be gone before it begins."""

    def __init__(self, chunks: AsyncIterator[bytes], headers: dict[str, str], end: Callable[[], None]) -> None:
        super().__init__(chunks, headers=headers, media_type="application/x-tar")
        self._end = end

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


class BackupApi:
    def __init__(self, data: Path, audit: AuditLog) -> None:
        self._data = data
        self._audit = audit
        self._busy = False  # one at a time: each takes as much room as the data

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/backup",
                self.backup,
                Scope.ADMIN,
                "Everything the node keeps, as a tar file",
                query=(WITHOUT_LOGS,),
                is_node=True,
                media="application/x-tar",
            )
        ]

    async def backup(self, request: Request) -> Response:
        logs = request.query_params.get("logs", "true")
        if logs not in ("true", "false"):
            raise bad_body(f"`logs` is {logs[:80]!r}", "use true or false")
        if self._busy:
            raise Refused(ApiCode.CONCURRENT, "another backup is under way", "wait for its end, then try again")
        self._busy = True
        work = None
        try:
            await self._audit.note(caller_of(request), "node.backup", "node")  # no change, but everything leaves
            work = await asyncio.to_thread(work_folder, self._data)
            manifest = await asyncio.to_thread(copy_folder, self._data, Path(work.name), logs=logs == "true")
        except BaseException:
            self._end(work)
            raise
        name = time.strftime("atoll-%Y%m%d-%H%M%S.tar", time.gmtime(manifest.made_at))
        headers = HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
        return TarResponse(_chunks(Path(work.name), manifest), headers, lambda: self._end(work))

    def _end(self, work: tempfile.TemporaryDirectory[str] | None) -> None:
        self._busy = False
        if work is not None:
            work.cleanup()


async def _chunks(folder: Path, manifest: Manifest) -> AsyncIterator[bytes]:
    chunks = tar_chunks(folder, manifest)
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
