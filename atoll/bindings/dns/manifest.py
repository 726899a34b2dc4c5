"""DNS for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import BindingSetting, Facts, Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.dns.ops import Dns

    return Dns(services.gate, services.settings.value("dns_servers"))


DOC = "Servers that node:dns asks for records, as ADDRESS or ADDRESS:PORT; by default those of the system."

MANIFEST = Manifest(kind="dns", make=make, settings={"dns_servers": BindingSetting((), Facts(DOC, free=True))})
