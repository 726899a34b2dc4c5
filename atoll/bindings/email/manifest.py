"""Email for the rest of Atoll. Its handler needs no entry in `env`: the operator routes addresses to workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingQuota, BindingSetting, CommandGroup, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.email.sent import SentCounts
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.email.ops import Email
    from atoll.bindings.email.settings import read_email

    return Email(services, read_email(services.settings), _counts(services))


def _counts(services: Services) -> SentCounts:
    if services.cluster is None:
        from atoll.bindings.email.sent import OwnSentCounts

        return OwnSentCounts(services.settings.data / "email.db")
    from atoll.bindings.email.postgres import PostgresSentCounts

    return PostgresSentCounts(services.cluster.postgres)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.email.admin import EmailApi
    from atoll.bindings.email.ops import Email

    assert isinstance(binding, Email)
    return EmailApi(tools, binding.incoming, binding.settings.max_bytes).routes()


MANIFEST = Manifest(
    kind="email",
    moved="atoll.bindings.email.moving",
    make=make,
    handlers=("email",),
    settings={
        "smtp_server": BindingSetting(
            "", Facts("Server that sends the email of workers: smtp://HOST:PORT or smtps://HOST:PORT.", shown="none")
        ),
        "smtp_credentials": BindingSetting(
            "",
            Facts(
                "File with USER:PASSWORD for that server.",
                shown="SMTP_USER and SMTP_PASSWORD of the environment, if set",
            ),
        ),
        "email_routes": BindingSetting(
            (),
            Facts("Addresses of tenants, each as ADDRESS=TENANT/WORKER; @DOMAIN for all of a domain.", free=True),
        ),
        "email_listen": BindingSetting(
            "", Facts("HOST:PORT on which the node receives email by SMTP or LMTP.", shown="off")
        ),
        "email_bytes": BindingSetting(
            25 * MB, Facts("Maximum size of a message, received or sent.", low=1024, high=50 * MB)
        ),
        "emails_per_day": BindingSetting(
            1_000, Facts("Recipients to whom a tenant may send email in a day (UTC), unless its quota sets another.")
        ),
    },
    quotas={"emails_per_day": BindingQuota("Recipients of email in a day (UTC).", setting="emails_per_day")},
    admin=admin,
    commands={"email": CommandGroup("atoll.bindings.email.cli", "Deliver a message to a worker.")},
)
