"""Email as ops of a running email() handler: forward and reply. And what other parts of email share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.email.addresses import is_address, same_address
from atoll.bindings.email.faults import EmailFault, invalid
from atoll.bindings.email.incoming import IncomingMail, IncomingMessage
from atoll.bindings.email.message import check_reply, is_replyable, with_headers
from atoll.bindings.email.receiver import EmailListener
from atoll.bindings.email.relay import Relay
from atoll.bindings.email.sending import Sender
from atoll.bindings.email.sent import SentCounts
from atoll.bindings.email.settings import EmailSettings
from atoll.bindings.services import Services
from atoll.errors import InvalidArgument

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class Email(Binding):
    kind = "email"
    ambient = True

    def __init__(self, services: Services, settings: EmailSettings, counts: SentCounts) -> None:
        self.settings = settings
        self._relay = Relay(settings.server, services.gate.tls if settings.server else None, settings.host)
        self._counts = counts
        self.sender = Sender(settings, self._relay, self._counts)
        self.incoming = IncomingMail(services.events)
        if settings.listen:
            services.gate.close_port(settings.listen[1])  # a worker could bring mail of anybody to other tenants
        self._listener = EmailListener(settings, services.workers, self.incoming) if settings.listen else None

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"emails_per_day": await self._counts.today(tenant)}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self._counts.bound(tenant, most["emails_per_day"])

    async def forget(self, tenant: str) -> None:
        await self._counts.forget(tenant)

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.email.metrics import email_metrics

        return email_metrics(self.incoming.received, self._relay.sent, self._relay.failed)

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._counts.close()

    # --- ops ---

    @op("email.forward")
    async def forward(self, call: OpCall) -> Reply:
        """Send the message that is handled to another address, unchanged but for X- headers."""
        return await answered(self._forward(call))

    async def _forward(self, call: OpCall) -> Reply:
        message = self._message(call)
        to = call.meta.get("to")
        if not isinstance(to, str) or not is_address(to):
            raise invalid("the destination is not an email address")
        content = with_headers(message.content, call.meta.get("headers", []))
        if not self.settings.owns(message.tenant, message.to):
            raise EmailFault("E_SENDER_NOT_VERIFIED", f"email from {message.to} not allowed")
        # The envelope names the address that received the message, which this node may send from.
        await self.sender.relay(message.tenant, message.to, [to], content)
        return Reply({"messageId": message.head.message_id or ""})

    @op("email.reply")
    async def reply(self, call: OpCall) -> Reply:
        """Answer the sender of the message that is handled, once."""
        return await answered(self._reply(call))

    async def _reply(self, call: OpCall) -> Reply:
        message = self._message(call)
        if message.has_reply or not is_replyable(message.head, message.mail_from):
            raise invalid("Original email is not replyable")
        to = call.meta.get("to")
        if not isinstance(to, str) or not same_address(to, message.mail_from):
            raise invalid("the recipient of a reply must be the sender of the message")
        content = check_reply(message.head, call.body)
        message.has_reply = True
        sent = await self.sender.send(message.tenant, call.meta.get("from"), [message.mail_from], content)
        return Reply({"messageId": sent})

    def _message(self, call: OpCall) -> IncomingMessage:
        found = self.incoming.find(call.scope.version.tenant, call.meta.get("key"))
        if found is None:
            raise InvalidArgument("the email() handler of this message has ended")
        return found


async def answered(reply: Awaitable[Reply]) -> Reply:
    """A reply, or the fault that took its place."""
    await asyncio.sleep(0)  # timeouts need a task
    try:
        return await reply
    except EmailFault as fault:
        return fault.reply
