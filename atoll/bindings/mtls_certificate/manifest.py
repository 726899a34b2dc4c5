"""Client certificates for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.fetch.ops import Fetch
    from atoll.bindings.mtls_certificate.ops import MtlsCertificate

    fetch = need("fetch")
    assert isinstance(fetch, Fetch)
    return MtlsCertificate(services, fetch)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.mtls_certificate.admin import MtlsApi
    from atoll.bindings.mtls_certificate.ops import MtlsCertificate

    assert isinstance(binding, MtlsCertificate)
    return MtlsApi(binding.certificates, tools.audit).routes()


MANIFEST = Manifest(
    kind="mtls_certificate",
    shared_file="mtls_certificates",
    make=make,
    config="atoll.bindings.mtls_certificate.config",
    type_name="Fetcher",
    admin=admin,
    commands={
        "mtls-certificate": CommandGroup(
            "atoll.bindings.mtls_certificate.cli",
            "Keep client certificates that workers present to servers.",
            phrases={r"\bGET /api/mtls-certificates lists\b": "`atoll mtls-certificate list` lists"},
        ),
    },
)
