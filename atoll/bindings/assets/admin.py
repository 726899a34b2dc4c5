"""Assets over HTTP: the manifest of a deploy, and the files that it lists as missing.

1. POST /api/assets/manifests names every file with its hash and size. The answer lists the hashes that are missing.
2. PUT /api/assets/files brings them, in one request or in many: see asset_files/incoming.py for the format.
3. The deploy names the manifest, in `assets.manifest`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import GRACE, SLOWEST, receive_json
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer
from atoll.api.work import offloaded
from atoll.asset_files.store import AssetStore, TooManyUploads
from atoll.assets.manifest import SentManifest, checked_text
from atoll.config import Settings
from atoll.errors import InvalidArgument, QuotaExceeded
from atoll.offload.jobs import Job

MAX_MANIFEST: Final = 32 << 20
MAX_UPLOAD: Final = 64 << 20  # bytes of one request; a single larger file is allowed too
RAW: Final = "application/octet-stream"
CHECK: Final = Job("atoll.assets.manifest:check_job", seconds=20)


class ManifestAnswer(Struct):
    manifest: str  # the id, for `assets.manifest` of the deploy
    missing: list[str]  # hashes of the files to send


class UploadAnswer(Struct):
    files: int
    bytes: int


class AssetsApi:
    def __init__(self, store: AssetStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def routes(self) -> list[Route]:
        return [
            Route(
                "POST",
                "/api/assets/manifests",
                self.add,
                Scope.DEPLOY,
                "Name the files of a deploy, and learn which are missing",
                takes=SentManifest,
                gives=ManifestAnswer,
            ),
            Route(
                "PUT", "/api/assets/files", self.upload, Scope.DEPLOY, "Send missing files", gives=UploadAnswer, raw=RAW
            ),
        ]

    async def add(self, request: Request) -> Response:
        args: dict[str, object] = {
            "max_files": self._settings.value("asset_count"),
            "max_bytes": self._settings.value("asset_file_bytes"),
        }
        with await receive_json(request, MAX_MANIFEST, "use fewer files") as body:
            data = body.data if body.is_small else body
            with await offloaded(request, CHECK, data, args) as result:
                text, why = checked_text(await result.read())
        if why:
            raise bad_body(why, "see docs/reference/api.md")
        try:
            added = await self._store.add_manifest(caller_of(request).tenant, text)
        except QuotaExceeded as error:
            hint = "delete workers or files, or ask an operator to raise the quota `asset_bytes` or `asset_count`"
            raise Refused(ApiCode.QUOTA, str(error), hint) from None
        except InvalidArgument as error:
            raise bad_body(str(error), "check the sizes in the manifest") from None
        return json_answer(ManifestAnswer(added.id, added.missing))

    async def upload(self, request: Request) -> Response:
        most = max(MAX_UPLOAD, self._settings.value("asset_file_bytes") + 1024)
        try:
            stored = await self._store.receive(caller_of(request).tenant, _chunks(request, most))
        except InvalidArgument as error:
            raise bad_body(str(error), "complete files before it were stored; send the rest again") from None
        except TooManyUploads as error:
            raise Refused(ApiCode.BUSY, str(error), "wait until one is done, then try again", retry_after=1) from None
        return json_answer(UploadAnswer(stored.files, stored.bytes))


async def _chunks(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body piece by piece, within limits of size and time."""
    size, began = 0, time.monotonic()
    chunks = request.stream()
    while True:
        left = began + GRACE + size / SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                chunk = await anext(chunks, None)
        except TimeoutError:
            message = f"the upload is too slow: the limit is {GRACE:g} s plus 1 s for each {SLOWEST >> 10} KB"
            raise Refused(ApiCode.SLOW_BODY, message, "complete files were stored; send the rest again") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise Refused(ApiCode.TOO_LARGE, f"the upload is larger than {most:,} bytes", "send several")
        if chunk:
            yield chunk
