"""The hosts of R2: the S3 endpoint, and those of public buckets."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.bindings.r2.around.public import PublicSite, host_of
from atoll.bindings.r2.ops import R2
from atoll.bindings.r2.s3.endpoint import S3Endpoint


class R2Site:
    def __init__(self, binding: R2) -> None:
        around = binding.around
        self._domain = around.public.domain
        self._s3 = S3Endpoint(binding.store, binding.credentials, around.settings)
        self._public = PublicSite(binding.store, around.public, around.settings)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        host = host_of(Request(scope))
        is_public = self._domain and self._domain in (host, host.partition(".")[2])
        app = self._public if is_public else self._s3
        await app(scope, receive, send)
