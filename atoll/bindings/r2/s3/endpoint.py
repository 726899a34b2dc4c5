"""The S3 endpoint as an ASGI application: verifies the signature, finds the operation, turns errors into XML.

The tenant is that of the access key. A request names a bucket, never a tenant, so it cannot reach another's.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.bindings.r2.around.settings import BucketSettings
from atoll.bindings.r2.credentials import Credentials
from atoll.bindings.r2.s3.asked import S3Request
from atoll.bindings.r2.s3.buckets import S3Buckets
from atoll.bindings.r2.s3.cross_origin import S3Cors
from atoll.bindings.r2.s3.faults import S3Fault, error_xml, fault_of
from atoll.bindings.r2.s3.objects import S3Objects
from atoll.bindings.r2.s3.payload import CHUNKED, BodyChecks, ChunkedBody, checked
from atoll.bindings.r2.s3.rules import S3Rules
from atoll.bindings.r2.s3.sigv4 import Signature, SignedRequest, read_query, read_signature, signing_key, verify
from atoll.bindings.r2.store import ObjectStore
from atoll.errors import AtollError

log = logging.getLogger("atoll.bindings")

# Subresources of S3 that R2 does not have
MISSING = (
    "accelerate", "acl", "analytics", "encryption", "intelligent-tiering", "inventory", "legal-hold", "logging",
    "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus",
    "publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "tagging", "torrent",
    "versioning", "versions", "website", "attributes",
)  # fmt: skip
DUMMY_SECRET = "x" * 64  # an unknown key costs as much time as a wrong signature

Operation: TypeAlias = Callable[[S3Request], Awaitable[Response]]


class S3Endpoint:
    def __init__(
        self,
        store: ObjectStore,
        credentials: Credentials,
        settings: BucketSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._credentials = credentials
        self._clock = clock
        self._cors = S3Cors(settings, credentials)
        self._rules = S3Rules(settings)
        self._objects = S3Objects(store)
        self._buckets = S3Buckets(store)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request, request_id = Request(scope, receive), secrets.token_hex(8).upper()
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            response = Response(status_code=400)  # the client is gone
        except AtollError as error:
            response = self._refusal(request, fault_of(error), request_id)
        except Exception:
            log.exception("S3: %s %s failed", request.method, scope["path"][:200])
            fault = S3Fault("InternalError", "We encountered an internal error. Please try again.")
            response = self._refusal(request, fault, request_id)
        response.headers["x-amz-request-id"] = request_id
        response.headers.update(await self._cors.of_answer(request))
        await response(scope, receive, send)

    def _refusal(self, request: Request, fault: S3Fault, request_id: str) -> Response:
        if request.method == "HEAD":
            return Response(status_code=fault.status)
        body = error_xml(fault, request.scope["path"][:1100], request_id)
        return Response(body, fault.status, media_type="application/xml")

    async def _answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return await self._cors.preflight(request)
        asked = await self._read(request)
        operation, writes = self._operation(asked)
        if not asked.credential.may(asked.bucket, writes) and asked.bucket:
            raise S3Fault("AccessDenied", "The access key does not allow this operation on this bucket.")
        return await operation(asked)

    async def _read(self, request: Request) -> S3Request:
        scope = request.scope
        query = read_query(scope["query_string"])
        signed = SignedRequest(request.method, scope["raw_path"], query, dict(request.headers))
        signature = read_signature(signed, self._clock())
        credential = await self._credentials.find(signature.access_key)
        secret = DUMMY_SECRET if credential is None else self._credentials.secret(credential)
        key = signing_key(secret, signature)
        try:
            verify(signed, signature, key)
        except S3Fault:
            if credential is not None:
                raise
        if credential is None:
            raise S3Fault("InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records.")
        try:
            path = unquote_to_bytes(scope["raw_path"]).decode().removeprefix("/")
            names = {name.decode(): value.decode() for name, value in query}
        except UnicodeDecodeError:
            raise S3Fault("InvalidRequest", "The path or the query is not UTF-8.") from None
        bucket, _, object_key = path.partition("/")
        body = _body_of(request, signature, key)
        return S3Request(request.method, bucket, object_key, names, request.headers, signature, credential, body)

    def _operation(self, asked: S3Request) -> tuple[Operation, bool]:
        """What is asked for, and whether it writes."""
        query, method = asked.query, asked.method
        missing = [name for name in MISSING if name in query]
        if missing:
            raise S3Fault("NotImplemented", f"`{missing[0]}` is not implemented: R2 does not have it.")
        if not asked.bucket:
            if method != "GET":
                raise S3Fault("MethodNotAllowed", "The specified method is not allowed against this resource.")
            return self._buckets.list_buckets, False
        found = self._of_object(asked) if asked.key else self._of_bucket(asked)
        if found is None:
            raise S3Fault("MethodNotAllowed", "The specified method is not allowed against this resource.")
        return found, method not in ("GET", "HEAD")

    def _of_bucket(self, asked: S3Request) -> Operation | None:
        query, buckets = asked.query, self._buckets
        for name, operations in self._rules.operations.items():
            if name in query:
                return operations.get(asked.method)
        if asked.method == "GET":
            if "location" in query:
                return buckets.location
            return buckets.uploads if "uploads" in query else buckets.list
        if asked.method == "POST":
            return self._objects.delete_many if "delete" in query else None
        return {"PUT": buckets.create, "DELETE": buckets.delete, "HEAD": buckets.head}.get(asked.method)

    def _of_object(self, asked: S3Request) -> Operation | None:
        query, objects = asked.query, self._objects
        has_upload = "uploadId" in query
        if asked.method == "PUT":
            if has_upload:
                return objects.put_part
            return objects.copy if "x-amz-copy-source" in asked.headers else objects.put
        if asked.method == "POST":
            return objects.create_upload if "uploads" in query else objects.complete if has_upload else None
        if asked.method == "DELETE":
            return objects.abort if has_upload else objects.delete
        if asked.method == "GET" and has_upload:
            return objects.parts
        return objects.get if asked.method in ("GET", "HEAD") else None


def _body_of(request: Request, signature: Signature, key: bytes) -> AsyncIterator[bytes]:
    is_document = request.method == "POST" and b"uploadId=" in request.scope["query_string"]
    checks = BodyChecks(signature, request.headers, is_document=is_document)
    source = request.stream()
    if signature.payload in CHUNKED:
        return checked(ChunkedBody(source, signature, key, checks).pieces(), checks)
    return checked(source, checks)
