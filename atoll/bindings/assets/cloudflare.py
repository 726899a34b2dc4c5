"""Static assets in Cloudflare's API: upload sessions, the files, and what the metadata of a worker says about them."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import receive_body
from atoll.api.callers import Caller, Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, account_id, envelope
from atoll.api.multipart import read_parts
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of
from atoll.api.work import CALLER, offloaded
from atoll.asset_files.store import MAX_UPLOADS, SentFileContent, TooManyUploads
from atoll.assets.media import is_compressible, media_of
from atoll.assets.rules import AssetRules
from atoll.bindings.assets.ops import Assets
from atoll.bindings.assets.uploads import SECONDS, UploadSession, WantedAsset, digest_of, pieces
from atoll.errors import InvalidArgument, QuotaExceeded
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, Uploading
from atoll.offload.jobs import Job
from atoll.offload.threads import in_thread
from atoll.pauses import with_pauses

CHECK: Final = Job("atoll.bindings.assets.uploads:check_job", seconds=20)
MAX_MANIFEST: Final = 32 << 20
FEW: Final = 50  # files up to this number are sent one by one and raw, more in forms
BUCKET_FILES: Final = 100
BUCKET_BYTES: Final = 8 << 20
PIECE: Final = 256 << 10  # of base64: a multiple of four has no padding within
UPLOADING, DONE = "assets session", "assets complete"


class AssetsOfScripts:
    def __init__(self, binding: Assets, tools: CloudflareTools) -> None:
        self._binding = binding
        self._store = binding.store
        self._sessions = binding.sessions
        self._signer = binding.signer
        self._tools = tools

    def routes(self) -> list[Route]:
        session = f"{ACCOUNT}/workers/scripts/{{script}}/assets-upload-session"
        upload = f"{ACCOUNT}/workers/assets/upload"
        return [
            Route("POST", session, self.begin, Scope.DEPLOY, "Name the files of a worker, and learn which are missing"),
            Route("POST", upload, self.upload, Scope.PUBLIC, "Send files in a form; the session's token is the proof"),
            Route("POST", f"{upload}/{{hash}}", self.upload_one, Scope.PUBLIC, "Send one file; proved like the form"),
        ]

    async def begin(self, request: Request) -> Response:
        caller, script, settings = caller_of(request), request.path_params["script"], self._binding.settings
        limits: dict[str, object] = {
            "max_files": settings.value("asset_count"),
            "max_bytes": settings.value("asset_file_bytes"),
        }
        with await receive_body(request, MAX_MANIFEST, "use fewer files") as body:
            result = await offloaded(request, CHECK, body.data if body.is_small else body, limits)
        with result:
            raw = await result.read()
        if raw[:1] == b"-":
            raise bad_body(raw[1:].decode("utf-8", "replace"))
        files = await in_thread(msgspec.msgpack.decode, raw[1:])
        session = UploadSession(caller.tenant, script, [WantedAsset(*each) for each in files])
        await in_thread(self._sessions.recognise, session, self._present(script, caller))
        name = self._sessions.open(session)
        missing = session.missing()
        if not missing:
            return envelope({"jwt": await self._finish(name, session), "buckets": []})
        one_by_one = len(missing) <= FEW
        token = self._signer.sign(
            UPLOADING, SECONDS, session=name, wrangler_single_asset_uploads=one_by_one,
            edge_kv_upload_concurrency=MAX_UPLOADS,
        )  # fmt: skip
        return envelope({"jwt": token, "buckets": buckets(missing)})

    def _present(self, script: str, caller: Caller) -> Any:
        try:
            assets = self._tools.find(script, caller).version.assets
        except Refused:
            return {}
        return assets.files if assets is not None else {}

    def _session(self, request: Request) -> tuple[str, UploadSession]:
        """The session whose token a request has. A token of another account is as good as none."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        claims = self._signer.check(UPLOADING, token.strip()) if scheme.lower() == "bearer" else None
        session = self._sessions.find(claims["session"]) if claims is not None else None
        if claims is None or session is None or account_id(session.tenant) != request.path_params["account"]:
            raise CloudflareRefusal(401, 10000, "the token of the upload is not valid, or not any more: deploy again")
        request.scope[CALLER] = Caller("upload", session.tenant, frozenset({Scope.DEPLOY}))
        return claims["session"], session

    async def upload_one(self, request: Request) -> Response:
        name, session = self._session(request)
        with await receive_body(request, self._binding.settings.value("asset_file_bytes")) as body:
            await self._take(session, {request.path_params["hash"]: await body.read()})
        return await self._answer(name, session)

    async def upload(self, request: Request) -> Response:
        name, session = self._session(request)
        most = max(2 * BUCKET_BYTES, self._binding.settings.value("asset_file_bytes") * 4 // 3) + (1 << 20)
        parts = await read_parts(request, most, 2 * BUCKET_FILES)
        if not parts:
            raise bad_body("the form has no files")
        if request.query_params.get("base64") != "true":
            await self._take(session, {part.name: part.content for part in parts})
            return await self._answer(name, session)
        contents: dict[str, bytes] = {}
        for part in parts:
            try:
                contents[part.name] = await in_thread(decoded, part.content)
            except (binascii.Error, ValueError):
                raise bad_body(f"the file {part.name[:80]!r} is not base64") from None
        await self._take(session, contents)
        return await self._answer(name, session)

    async def _take(self, session: UploadSession, contents: dict[str, bytes]) -> None:
        files, arrived = [], {}
        for name, content in contents.items():
            wanted = session.wanted.get(name)
            if wanted is None:
                raise CloudflareRefusal(400, 10026, f"the session has no file {name[:80]!r}")
            theirs, ours = await in_thread(digest_of, pieces(content), wanted.path)
            if theirs != name or len(content) != wanted.size:
                text = f"the content of {wanted.path[:200]} has the hash {theirs} and {len(content):,} bytes"
                raise CloudflareRefusal(400, 10026, f"{text}: the session has {name} with {wanted.size:,} bytes")
            packs = is_compressible(media_of(wanted.path), wanted.size)
            files.append(SentFileContent(bytes.fromhex(ours), content, packs))
            arrived[name] = ours
        try:
            await self._store.take(session.tenant, files)
        except TooManyUploads as error:
            raise Refused(ApiCode.BUSY, str(error), "wait until one is done, then try again", retry_after=1) from None
        session.arrived |= arrived

    async def _answer(self, name: str, session: UploadSession) -> Response:
        if not session.is_complete:
            return envelope({}, status=202)
        return envelope({"jwt": await self._finish(name, session)}, status=201)

    async def _finish(self, name: str, session: UploadSession) -> str:
        """Store the manifest. The token that a deploy names it by is for one script of one tenant."""
        text = await in_thread(session.manifest)
        try:
            added = await self._store.add_manifest(session.tenant, text)
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error)) from None
        except InvalidArgument as error:
            raise bad_body(str(error)) from None
        if added.missing:
            raise CloudflareRefusal(409, 10026, f"{len(added.missing)} files were removed meanwhile", "deploy again")
        claims = {"tenant": session.tenant, "script": session.script, "manifest": added.id}
        return self._signer.sign(DONE, SECONDS, **claims)


def decoded(text: bytes) -> bytes:
    """In a thread: base64. Decoding holds the interpreter, and 33 MB at once would hold it too long."""
    pieces = (text[first : first + PIECE] for first in range(0, len(text), PIECE))
    return b"".join([base64.b64decode(piece, None, True) for piece in with_pauses(pieces, 1)])


def buckets(missing: list[WantedAsset]) -> list[list[str]]:
    """The hashes to send, in groups of bounded size."""
    found: list[list[str]] = [[]]
    size = 0
    for each in missing:
        if found[-1] and (len(found[-1]) == BUCKET_FILES or size + each.size > BUCKET_BYTES):
            found.append([])
            size = 0
        found[-1].append(each.hash)
        size += each.size
    return found


class AssetConfig(msgspec.Struct):
    """`assets.config` of the metadata."""

    html_handling: str | None = None
    not_found_handling: str | None = None
    run_worker_first: bool | list[str] | None = None
    headers: str | None = msgspec.field(default=None, name="_headers")
    redirects: str | None = msgspec.field(default=None, name="_redirects")


class AssetsMetadata(msgspec.Struct):
    jwt: str | None = None
    config: AssetConfig | None = None


def metadata(binding: Assets, upload: Uploading) -> dict[str, Any]:
    sent, before = upload.metadata.get("assets"), upload.current.assets if upload.current is not None else None
    if sent is None:
        return {"assets": None} if before is not None and not upload.metadata.get("keep_assets") else {}
    try:
        wanted = msgspec.convert(sent, AssetsMetadata)
    except msgspec.ValidationError as error:
        raise bad_body(f"`assets` does not fit: {error}") from None
    config = wanted.config or AssetConfig()
    if wanted.jwt is None and upload.metadata.get("keep_assets") and before is not None:
        manifest = before.rules.manifest
    else:
        claims = binding.signer.check(DONE, wanted.jwt or "")
        if claims is None or (claims["tenant"], claims["script"]) != (upload.tenant, upload.script):
            raise CloudflareRefusal(400, 10026, "`assets.jwt` is not the token of a finished upload of this worker")
        manifest = claims["manifest"]
    given = {name: value for name in config.__struct_fields__ if (value := getattr(config, name)) is not None}
    if isinstance(first := given.get("run_worker_first"), list):
        given["run_worker_first"] = tuple(first)
    return {"assets": AssetRules(manifest, **given)}


def no_fields(binding: Any, tenant: str, entry: Any) -> dict[str, Any]:
    return {}


def routes(binding: Assets, tools: CloudflareTools) -> list[Route]:
    return AssetsOfScripts(binding, tools).routes()


PART = CloudflarePart(types=(CloudflareType("assets", no_fields, no_fields),), metadata=metadata, routes=routes)
