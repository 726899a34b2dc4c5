"""`send_email` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading


class ConfigSendEmail(Struct):
    name: str
    destination_address: str = ""
    allowed_destination_addresses: list[str] | None = None
    allowed_sender_addresses: list[str] | None = None


def read(bindings: list[ConfigSendEmail], reading: Reading) -> None:
    for each in bindings:
        reading.bind(
            "send_email",
            each.name,
            destination_address=each.destination_address,
            allowed_destination_addresses=each.allowed_destination_addresses,
            allowed_sender_addresses=each.allowed_sender_addresses,
        )


FIELDS = (
    ConfigField(name="send_email", shape=list[ConfigSendEmail], read=read, subfields={"send_email[].remote": REMOTE}),
)
