"""send_email as an op: who may be written to through this binding. The rest is the business of email/."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.email.addresses import is_address, same_address
from atoll.bindings.email.faults import EmailFault
from atoll.bindings.email.ops import answered
from atoll.bindings.email.sending import Sender
from atoll.errors import InvalidArgument

MAX_LISTED = 100


class SendEmailEntry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    destination_address: str = ""
    allowed_destination_addresses: list[str] | None = None
    allowed_sender_addresses: list[str] | None = None


class SendEmail(Binding):
    kind = "send_email"
    Entry = SendEmailEntry

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def claim(self, tenant: str, entry: SendEmailEntry) -> str:
        listed = [*(entry.allowed_destination_addresses or ()), *(entry.allowed_sender_addresses or ())]
        if entry.destination_address:
            listed.append(entry.destination_address)
        for address in listed:
            if not is_address(address):
                raise InvalidArgument(f"{address!r:.80} is not an email address")
        if len(listed) > MAX_LISTED:
            raise InvalidArgument(f"a binding may list {MAX_LISTED} addresses")
        return msgspec.json.encode(entry).decode()

    @op("send_email.send")
    async def send(self, call: OpCall) -> Reply:
        """Send a message. The reply has its Message-ID, or a fault."""
        return await answered(self._send(call))

    async def _send(self, call: OpCall) -> Reply:
        entry = msgspec.json.decode(call.grant.resource or "{}", type=SendEmailEntry)
        mail_from, recipients = call.meta.get("from"), call.meta.get("to")
        if not isinstance(mail_from, str) or not isinstance(recipients, list):
            raise InvalidArgument("`from` or `to` is missing")
        if entry.allowed_sender_addresses is not None and not _is_in(mail_from, entry.allowed_sender_addresses):
            raise EmailFault("E_SENDER_NOT_VERIFIED", f"email from {mail_from[:300]} not allowed")
        for to in recipients:
            allowed = entry.allowed_destination_addresses
            is_other = bool(entry.destination_address) and not _is_in(to, [entry.destination_address])
            if is_other or (allowed is not None and not _is_in(to, allowed)):
                raise EmailFault("E_RECIPIENT_NOT_ALLOWED", f"email to {str(to)[:300]} not allowed")
        sent = await self._sender.send(call.scope.version.tenant, mail_from, recipients, call.body)
        return Reply({"messageId": sent})


def _is_in(address: object, listed: Sequence[str]) -> bool:
    return isinstance(address, str) and any(same_address(address, each) for each in listed)
