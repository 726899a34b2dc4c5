"""Access keys of the S3 endpoint over HTTP. A secret is shown once, when its key is made."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.r2.admin import iso_ms
from atoll.bindings.r2.credentials import Credentials
from atoll.bindings.r2.records import Credential
from atoll.bindings.r2.store import BucketPlace, ObjectStore
from atoll.errors import QuotaExceeded

MAX_NAME = 100


class NewCredential(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    bucket: str = ""
    read_only: bool = False


class CredentialAnswer(msgspec.Struct, omit_defaults=True):
    access_key_id: str
    name: str
    bucket: str
    read_only: bool
    created_at: str
    secret_access_key: str = ""


class CredentialsAnswer(msgspec.Struct):
    credentials: list[CredentialAnswer]


class CredentialsApi:
    def __init__(self, credentials: Credentials, audit: AuditLog, store: ObjectStore) -> None:
        self._credentials = credentials
        self._audit = audit
        self._store = store

    def routes(self) -> list[Route]:
        admin = Scope.ADMIN
        return [
            Route(
                "GET", "/api/r2-credentials", self.list, admin, "The S3 access keys of a tenant",
                gives=CredentialsAnswer,
            ),
            Route(
                "POST", "/api/r2-credentials", self.create, admin, "Create an S3 access key", NewCredential,
                CredentialAnswer, status=201,
            ),
            Route(
                "DELETE", "/api/r2-credentials/{credential}", self.delete, admin, "Delete an S3 access key", status=204
            ),
        ]  # fmt: skip

    async def list(self, request: Request) -> Response:
        found = await self._credentials.of(caller_of(request).tenant)
        return json_answer(CredentialsAnswer([_shown(each) for each in found]))

    async def create(self, request: Request) -> Response:
        body, caller = await read_shape(request, NewCredential), caller_of(request)
        if len(body.name) > MAX_NAME:
            raise bad_body(f"`name` has more than {MAX_NAME} characters")
        if body.bucket and not await self._store.exists(BucketPlace(caller.tenant, body.bucket)):
            hint = "GET /api/r2 lists the buckets; POST /api/r2 creates one"
            raise Refused(ApiCode.NOT_FOUND, f"there is no bucket `{body.bucket[:80]}`", hint)
        await self._audit.note(caller, "r2.create-credential", body.bucket or "all buckets", body.name)
        try:
            made, secret = await self._credentials.create(caller.tenant, body.name, body.bucket, not body.read_only)
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error)) from None
        answer = _shown(made)
        answer.secret_access_key = secret
        return json_answer(answer, status=201, headers={"location": f"/api/r2-credentials/{made.access_key}"})

    async def delete(self, request: Request) -> Response:
        access_key, caller = request.path_params["credential"], caller_of(request)
        known = await self._credentials.find(access_key)
        if known is None or known.tenant != caller.tenant:
            hint = "GET /api/r2-credentials lists the access keys"
            raise Refused(ApiCode.NOT_FOUND, f"there is no access key `{access_key[:80]}`", hint)
        await self._audit.note(caller, "r2.delete-credential", access_key)
        await self._credentials.delete(caller.tenant, access_key)
        return no_content()


def _shown(credential: Credential) -> CredentialAnswer:
    return CredentialAnswer(
        credential.access_key,
        credential.name,
        credential.bucket,
        not credential.can_write,
        iso_ms(credential.created_at),
    )
