"""Runs email() handlers, and remembers the message while one runs: for forward() and reply()."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import NamedTuple

import msgspec

from atoll.bindings.email.message import MessageHead, read_head, too_many_hops
from atoll.bindings.events import EventFailed, EventKind, Events
from atoll.wire.generated import OUTCOME_NAMES
from atoll.workers import Version

log = logging.getLogger("atoll.bindings")

EMAIL = EventKind("email", is_background=True)
AT_ONCE = 16  # handlers of the node
PER_TENANT = 4
MAX_REASON = 200


class Handled(NamedTuple):
    """How a handler ended. `rejected` is its reason for not taking the message."""

    outcome: str
    message: str = ""
    rejected: str | None = None


class EmailVerdict(msgspec.Struct):
    reject: str | None = None


class IncomingMessage:
    def __init__(self, tenant: str, mail_from: str, to: str, content: bytes, head: MessageHead) -> None:
        self.tenant = tenant
        self.mail_from = mail_from
        self.to = to
        self.content = content
        self.head = head
        self.has_reply = False


class IncomingMail:
    def __init__(self, events: Events) -> None:
        self._events = events
        self._open: dict[str, IncomingMessage] = {}  # by a random key that the handler's call knows
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._of_tenant: dict[str, int] = {}
        self.received: dict[str, int] = {}  # messages by outcome, for metrics

    def find(self, tenant: str, key: object) -> IncomingMessage | None:
        found = self._open.get(key) if isinstance(key, str) else None
        return found if found is not None and found.tenant == tenant else None

    async def deliver(self, version: Version, mail_from: str, to: str, content: bytes) -> Handled:
        """Run the email() handler of a worker. EmailFault if the message has no readable headers."""
        head = read_head(content)
        if too_many_hops(head):
            handled = Handled("ok", rejected="too many hops: the message runs in a circle")
        elif self._of_tenant.get(version.tenant, 0) >= PER_TENANT:
            handled = Handled("exceededResources", f"{PER_TENANT} messages of this tenant are handled already")
        else:
            handled = await self._run(version, IncomingMessage(version.tenant, mail_from, to, content, head))
        outcome = "rejected" if handled.rejected is not None else handled.outcome
        self.received[outcome] = self.received.get(outcome, 0) + 1
        return handled

    async def _run(self, version: Version, message: IncomingMessage) -> Handled:
        key, tenant = secrets.token_hex(16), version.tenant
        self._open[key] = message
        self._of_tenant[tenant] = self._of_tenant.get(tenant, 0) + 1
        meta = {"from": message.mail_from, "to": message.to, "key": key}
        try:
            async with self._slots:
                said = await self._events.run(version, EMAIL, f"EMAIL {message.to}", meta, message.content)
            verdict = msgspec.json.decode(said, type=EmailVerdict)
            return Handled("ok", rejected=None if verdict.reject is None else _plain(verdict.reject))
        except EventFailed as error:
            failure = error.failure
            text = f"{failure.name}: {failure.message}" if failure.name else failure.message
            return Handled(OUTCOME_NAMES[failure.facts.outcome], text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Handled("internalError", "the answer of the handler cannot be read")
        finally:
            del self._open[key]
            self._of_tenant[tenant] -= 1
            if not self._of_tenant[tenant]:
                del self._of_tenant[tenant]


def _plain(reason: str) -> str:
    """A reason for one line of SMTP: no line ends, no other control characters."""
    return "".join(c if " " <= c <= "~" else "?" for c in reason[:MAX_REASON]) or "rejected"
