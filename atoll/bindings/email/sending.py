"""The rules for every message that a worker sends: whose address it is, to whom, how large, how many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from atoll.bindings.email.addresses import is_address
from atoll.bindings.email.faults import EmailFault, invalid
from atoll.bindings.email.message import check_outgoing
from atoll.bindings.email.relay import Relay
from atoll.bindings.email.sent import SentCounts
from atoll.bindings.email.settings import EmailSettings

MAX_RECIPIENTS = 50


class Sender:
    def __init__(self, settings: EmailSettings, relay: Relay, counts: SentCounts) -> None:
        self._settings = settings
        self._relay = relay
        self._counts = counts

    async def send(self, tenant: str, mail_from: object, recipients: object, message: bytes) -> str:
        """Send a message of a tenant. Returns its Message-ID. EmailFault if it may not, or it fails."""
        sender, to = self._checked(tenant, mail_from, recipients, message)
        message_id = check_outgoing(message, sender)
        await self.relay(tenant, sender, to, message)
        return message_id

    async def relay(self, tenant: str, sender: str, recipients: Sequence[str], message: bytes) -> None:
        """Count and send a message whose sender was checked."""
        await asyncio.sleep(0)  # timeouts need a task
        await self._counts.spend(tenant, len(recipients))
        await self._relay.send(sender, recipients, message)

    def _checked(self, tenant: str, mail_from: object, recipients: object, message: bytes) -> tuple[str, list[str]]:
        if not isinstance(mail_from, str) or not is_address(mail_from):
            raise invalid("the sender is not an email address")
        if not isinstance(recipients, list) or not recipients or not all(is_address(each) for each in recipients):
            raise invalid("a recipient is not an email address")
        if len(recipients) > MAX_RECIPIENTS:
            raise EmailFault("E_TOO_MANY_RECIPIENTS", f"an email may have {MAX_RECIPIENTS} recipients")
        if len(message) > self._settings.max_bytes:
            most = self._settings.max_bytes
            raise EmailFault("E_CONTENT_TOO_LARGE", f"an email may have {most:,} bytes (`email_bytes`)")
        if not self._settings.owns(tenant, mail_from):
            raise EmailFault(
                "E_SENDER_NOT_VERIFIED",
                f"email from {mail_from} not allowed: it is no address of this tenant. An operator adds it to"
                " `email_routes`",
            )
        return mail_from, recipients
