"""CORS of the S3 endpoint: pages of other origins that use it with links, or with an access key."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from atoll.bindings.r2.around.cors import Cors, allowed, answered
from atoll.bindings.r2.around.settings import BucketSettings
from atoll.bindings.r2.credentials import Credentials
from atoll.bindings.r2.records import Credential
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.s3.sigv4 import AUTHORIZATION, read_query
from atoll.bindings.r2.store import BucketPlace
from atoll.errors import StorageFailed


class S3Cors:
    def __init__(self, settings: BucketSettings, credentials: Credentials) -> None:
        self._settings = settings
        self._credentials = credentials

    async def preflight(self, request: Request) -> Response:
        """A preflight is not signed. Only that of a link names an access key, and so the tenant.

        For others the rules of every bucket of this name count. This gives nothing away: the request that follows must
        be signed, and its answer has the headers of its own bucket's rules only.
        """
        bucket, credential = _bucket_of(request), await self._credential_of(request)
        if credential is None:
            found = await self._settings.of_name(bucket, Cors)
        else:
            own = await self._settings.find(BucketPlace(credential.tenant, bucket), Cors)
            found = [] if own is None else [own]
        fields = allowed(found, request.headers)
        if fields is None:
            raise S3Fault("AccessForbidden", "CORSResponse: no CORS rule of the bucket allows this request.")
        return Response(headers=fields)

    async def of_answer(self, request: Request) -> dict[str, str]:
        """The CORS headers of an answer, also of an error: otherwise a page could not read what went wrong."""
        if "origin" not in request.headers or request.method == "OPTIONS":
            return {}
        try:
            credential = await self._credential_of(request)
            if credential is None:
                return {}
            cors = await self._settings.find(BucketPlace(credential.tenant, _bucket_of(request)), Cors)
        except StorageFailed:  # the answer says so
            return {}
        return answered(cors, request.method, request.headers)

    async def _credential_of(self, request: Request) -> Credential | None:
        """The access key that a request names. Its signature may be wrong: only headers of CORS depend on this."""
        found = AUTHORIZATION.fullmatch(request.headers.get("authorization", "").strip())
        named = found[1] if found is not None else ""
        if not named:
            try:
                query = dict(read_query(request.scope["query_string"]))
            except S3Fault:  # the answer says so
                return None
            named = query.get(b"X-Amz-Credential", b"").decode("utf-8", "replace")
        return await self._credentials.find(named.partition("/")[0])


def _bucket_of(request: Request) -> str:
    return unquote(request.scope["raw_path"].decode("latin-1")).removeprefix("/").partition("/")[0]
