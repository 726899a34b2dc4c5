"""send_email for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.email.ops import Email
    from atoll.bindings.send_email.ops import SendEmail

    email = need("email")
    assert isinstance(email, Email)
    return SendEmail(email.sender)


MANIFEST = Manifest(kind="send_email", make=make, config="atoll.bindings.send_email.config", type_name="SendEmail")
