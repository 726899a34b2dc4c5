"""`mtls_certificates` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading


class ConfigCertificate(Struct):
    binding: str
    certificate_id: str


def read(certificates: list[ConfigCertificate], reading: Reading) -> None:
    for each in certificates:
        # `local`: `atoll dev` starts without the certificate, as it has none at first.
        reading.bind("mtls_certificate", each.binding, certificate=each.certificate_id, local=True)


FIELDS = (
    ConfigField(
        name="mtls_certificates",
        shape=list[ConfigCertificate],
        read=read,
        subfields={"mtls_certificates[].remote": REMOTE},
    ),
)
