"""Client certificates over HTTP. Private keys are never shown."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.mtls_certificate.certificates import ClientCertificate, ClientCertificates, UnusableCertificate
from atoll.bindings.mtls_certificate.ops import NAME, NAME_HINT
from atoll.clock import iso_time
from atoll.errors import QuotaExceeded

MAX_PEM = 64 * 1024  # characters of certificate or key


class NewCertificate(msgspec.Struct, forbid_unknown_fields=True):
    """Both in PEM; `certificate` may be followed by those of its authorities."""

    name: str
    certificate: str
    private_key: str


class CertificateAnswer(msgspec.Struct):
    name: str
    issuer: str
    serial_number: str
    expires_at: str
    created_at: str


class CertificatesAnswer(msgspec.Struct, omit_defaults=True):
    certificates: list[CertificateAnswer]
    cursor: str = ""


class MtlsApi:
    def __init__(self, certificates: ClientCertificates, audit: AuditLog) -> None:
        self._certificates = certificates
        self._audit = audit

    def routes(self) -> list[Route]:
        read, change, gives = Scope.READ, Scope.DEPLOY, CertificateAnswer
        all_of_them, one = "/api/mtls-certificates", "/api/mtls-certificates/{certificate}"
        return [
            Route(
                "GET", all_of_them, self.list, read, "The client certificates of a tenant, by name",
                gives=CertificatesAnswer, query=name_query(),
            ),
            Route(
                "POST", all_of_them, self.upload, change, "Send a client certificate and its key", takes=NewCertificate,
                gives=gives, status=201,
            ),
            Route("GET", one, self.get, read, "A client certificate, without its key", gives=gives),
            Route("DELETE", one, self.delete, change, "Delete a client certificate", status=204),
        ]  # fmt: skip

    def _find(self, request: Request) -> ClientCertificate:
        name = request.path_params["certificate"]
        found = self._certificates.find(caller_of(request).tenant, name)
        if found is None:
            hint = "GET /api/mtls-certificates lists the certificates"
            raise Refused(ApiCode.NOT_FOUND, f"there is no client certificate `{name[:80]}`", hint)
        return found

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("certificates", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, CertificateAnswer]]:
        for each in self._certificates.of_tenant(tenant):
            if each.name > after:
                yield each.name, _shown(each)

    async def upload(self, request: Request) -> Response:
        body, caller = await read_shape(request, NewCertificate), caller_of(request)
        if not NAME.fullmatch(body.name):
            raise bad_body(f"`name` is {body.name!r:.80}", NAME_HINT)
        if len(body.certificate) > MAX_PEM or len(body.private_key) > MAX_PEM:
            raise bad_body("the certificate or its key is too long", f"each has at most {MAX_PEM:,} characters")
        if self._certificates.find(caller.tenant, body.name) is not None:
            hint = "delete it first, or take another name"
            raise Refused(ApiCode.NAME_TAKEN, f"a client certificate named `{body.name}` already exists", hint)
        await self._audit.note(caller, "mtls_certificate.upload", body.name)
        try:
            made = await self._certificates.add(caller.tenant, body.name, body.certificate, body.private_key)
        except UnusableCertificate as error:
            raise bad_body(str(error), "see docs/bindings/mtls.md") from None
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error), "delete a certificate") from None
        return json_answer(_shown(made), status=201, headers={"location": f"/api/mtls-certificates/{body.name}"})

    async def get(self, request: Request) -> Response:
        return json_answer(_shown(self._find(request)))

    async def delete(self, request: Request) -> Response:
        found = self._find(request)
        await self._audit.note(caller_of(request), "mtls_certificate.delete", found.name)
        await self._certificates.delete(found)
        return no_content()


def _shown(each: ClientCertificate) -> CertificateAnswer:
    return CertificateAnswer(
        each.name, each.issuer, each.serial, iso_time(each.expires_at), iso_time(each.created_at)
    )  # fmt: skip
