"""GET /api/workers/{worker}/versions/{version}/bundle: the code of a version as a tar stream.

The archive is the folder that `atoll build` writes: manifest.json with the settings and the hash of every module, the
modules below modules/, and static assets below files/ (project/carried.py). So it can be deployed again as it is. It is
made piece by piece: no module and no large file is in memory as a whole.
"""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.routes import HEADERS, Route, caller_of
from atoll.control.deploy.deployer import Deployer
from atoll.control.endpoints.versions import fields_of
from atoll.control.store.asset_rows import ListedFiles
from atoll.control.store.bundle_rows import StoredModule
from atoll.control.store.workers import Deployment, WorkerStore
from atoll.errors import StorageFailed

FORMAT = "atoll-bundle-v1"  # as project/out.py reads it
FILE_LIST, FILE_FOLDER = "files.sha256", "files"  # as project/carried.py reads them
CHUNK = 256 << 10
BLOCK = 512  # tar files consist of such blocks
NOT_IN_BODY = frozenset({"handlers", "secrets"})  # facts about a version that a deploy does not set


class BundlesApi:
    def __init__(self, deployer: Deployer, store: WorkerStore, audit: AuditLog) -> None:
        self._deployer = deployer
        self._store = store
        self._audit = audit

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/workers/{worker}/versions/{version}/bundle",
                self.bundle,
                Scope.DEPLOY,
                "The code and settings of a version, as a tar file",
                media="application/x-tar",
            )
        ]

    async def bundle(self, request: Request) -> Response:
        caller = caller_of(request)
        worker = self._deployer.find(request.path_params["worker"], caller)
        found = await self._deployer.version(worker, request.path_params["version"], has_code=False)
        modules = await self._store.bundled(found.version.id)
        await self._audit.note(caller, "version.download", worker.name, found.version.id)
        headers = HEADERS | {"content-disposition": f'attachment; filename="{worker.name}-{found.number}.tar"'}
        assets = found.version.assets
        files = None if assets is None else await self._store.listed_files(caller.tenant, assets.rules)
        return StreamingResponse(self._chunks(found, modules, files), headers=headers, media_type="application/x-tar")

    async def _chunks(
        self, found: Deployment, modules: Sequence[StoredModule], files: ListedFiles | None
    ) -> AsyncIterator[bytes]:
        manifest = manifest_of(found, modules)
        yield _head("manifest.json", len(manifest)) + manifest + _padding(len(manifest))
        for module in modules:
            for suffix, column, size in (("", "source", module.size), (".map", "source_map", module.map_size)):
                if column == "source_map" and not module.map_sha256:
                    continue
                yield _head(f"modules/{module.path}{suffix}", size)
                for start in range(0, size, CHUNK):
                    yield await self._store.piece(module.row, column, start, min(CHUNK, size - start))
                yield _padding(size)
        if files is not None:
            await self._deployer.bring_files(found.version.tenant, [place for _, _, place in files.contents])
            yield _head(FILE_LIST, len(files.text)) + files.text + _padding(len(files.text))
            pieces = file_pieces(files)
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                yield piece
        yield bytes(2 * BLOCK)


def file_pieces(files: ListedFiles) -> Iterator[bytes]:
    """In threads: the contents of all files as parts of a tar file, many small ones in one piece."""
    waiting = bytearray()
    for digest, size, place in files.contents:
        waiting += _head(f"{FILE_FOLDER}/{digest}", size)
        with open(place, "rb", buffering=0) as file:
            left = size
            while left:
                piece = file.read(min(left, CHUNK))
                if not piece:
                    raise StorageFailed(f"the file {digest} is shorter than it was")  # the client sees a cut archive
                left -= len(piece)
                waiting += piece
                if len(waiting) >= CHUNK:
                    yield bytes(waiting)
                    waiting.clear()
        waiting += _padding(size)
    yield bytes(waiting)


def manifest_of(found: Deployment, modules: Sequence[StoredModule]) -> bytes:
    entries = []
    for module in modules:
        entry = {"path": module.path, "kind": module.kind, "sha256": module.sha256}
        if module.map_sha256:
            entry["source_map_sha256"] = module.map_sha256
        entries.append(entry)
    fields = {name: value for name, value in fields_of(found).items() if name not in NOT_IN_BODY}
    assets = found.version.assets
    manifest = {
        "format": FORMAT,
        "name": found.name,
        # Assets with all their rules, as a deploy takes them
        **dict(fields, assets=assets.rules if assets is not None else None),
        "required_secrets": sorted(found.secrets),
        "main": found.version.main,
        "modules": entries,
    }
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def _head(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK)
