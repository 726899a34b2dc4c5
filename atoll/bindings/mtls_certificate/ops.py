"""mtls_certificate: a client certificate that fetch() of the binding presents.

There is no op: `fetch.start` through the binding leads here (bindings/fetch). The worker never sees the private key.
"""

from __future__ import annotations

import re

import msgspec

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.base import Binding
from atoll.bindings.fetch.ops import Fetch
from atoll.bindings.mtls_certificate.certificates import ClientCertificates
from atoll.bindings.services import Services
from atoll.egress.client import ClientIdentity
from atoll.errors import InvalidArgument, NetworkError
from atoll.workers import Grant, Version

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NAME_HINT = "use up to 64 letters, digits, dots, dashes and _"
OPTIONAL = "?"  # begins the resource of a grant of `atoll dev`: the certificate may be missing


class MtlsEntry(msgspec.Struct, forbid_unknown_fields=True):
    certificate: str
    local: bool = False  # sent by `atoll dev` alone


class MtlsCertificate(Binding):
    kind = "mtls_certificate"
    Entry = MtlsEntry

    def __init__(self, services: Services, fetch: Fetch) -> None:
        place = services.place_of("mtls_certificates")
        self.certificates = ClientCertificates(place, services.seals, services.settings.ca_file)
        fetch.partners.presents[self.kind] = self._identity

    def claim(self, tenant: str, entry: MtlsEntry) -> str:
        if not NAME.fullmatch(entry.certificate):
            raise InvalidArgument(f"the certificate is named {entry.certificate!r:.80}: {NAME_HINT}")
        return f"{OPTIONAL if entry.local else ''}{entry.certificate}"

    async def prepare(self, tenant: str, resource: str) -> None:
        if not await self.exists(tenant, resource):
            hint = f"send it: `atoll mtls-certificate upload --name {resource} --cert FILE --key FILE`"
            raise Refused(ApiCode.NOT_FOUND, f"there is no client certificate `{resource}`", hint)

    async def exists(self, tenant: str, resource: str) -> bool:
        return resource.startswith(OPTIONAL) or self.certificates.find(tenant, resource) is not None

    async def holdings(self, tenant: str) -> list[str]:
        return [each.name for each in self.certificates.of_tenant(tenant)]

    async def forget(self, tenant: str) -> None:
        for each in self.certificates.of_tenant(tenant):
            await self.certificates.delete(each)

    async def seal_anew(self) -> None:
        await self.certificates.seal_anew()

    async def close(self) -> None:
        await self.certificates.close()

    async def _identity(self, version: Version, grant: Grant) -> ClientIdentity:
        name = grant.resource.removeprefix(OPTIONAL)
        found = self.certificates.find(version.tenant, name)
        if found is None:
            raise NetworkError(f"there is no client certificate `{name}`: `atoll mtls-certificate upload` sends one")
        return await self.certificates.identity(found)
