"""Sends messages through the SMTP server of the operator: TLS, login, and the message in pieces.

aiosmtplib would convert a whole message in one go. Pieces keep the event loop free. Every line end becomes CR LF and
every dot at the start of a line is doubled, so no message can end early and smuggle commands in.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator, Sequence

import aiosmtplib

from atoll.bindings.email.faults import EmailFault
from atoll.bindings.email.settings import SmtpServer

log = logging.getLogger("atoll.bindings")

SECONDS = 60.0  # for each step
AT_ONCE = 8  # connections to the server
PIECE = 128 << 10
NO_SERVER = (
    "this node cannot send email. An operator names a server with the setting `smtp_server`; see docs/guides/email.md"
    " of Atoll"
)
START_INPUT, DONE = 354, 250


class Relay:
    def __init__(self, server: SmtpServer | None, tls: ssl.SSLContext | None, host: str) -> None:
        self._server = server
        self._tls = tls
        self._host = host
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.sent = self.failed = 0  # for metrics

    async def send(self, mail_from: str, recipients: Sequence[str], message: bytes) -> None:
        """Hand a message to the server. EmailFault if it does not take it for all recipients."""
        if self._server is None:
            raise EmailFault("E_INTERNAL_SERVER_ERROR", NO_SERVER)
        try:
            async with self._slots:
                await self._send(self._server, mail_from, recipients, message)
        except aiosmtplib.SMTPAuthenticationError as error:
            raise self._fault("the server of this node refuses its password", error) from None
        except aiosmtplib.SMTPResponseException as error:
            told = "".join(c if c.isprintable() else " " for c in str(error.message)[:300])
            raise self._fault(f"the server refuses the message: {error.code} {told}", error) from None
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            raise self._fault("the server that sends email cannot be reached: try again later", error) from None
        self.sent += 1

    def _fault(self, text: str, error: Exception) -> EmailFault:
        self.failed += 1
        log.warning("an email could not be sent through %s: %s", self._server, error)
        return EmailFault("E_DELIVERY_FAILED", text)

    async def _send(self, server: SmtpServer, mail_from: str, recipients: Sequence[str], message: bytes) -> None:
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.user or None,
            password=server.password or None,
            local_hostname=self._host,
            use_tls=server.is_tls,
            start_tls=None if server.is_tls or not server.needs_tls else True,
            tls_context=self._tls,
            timeout=SECONDS,
        )
        try:
            await client.connect()
            await client.mail(mail_from)
            for recipient in recipients:
                await client.rcpt(recipient)
            await _data(client, message)
            await client.quit()
        finally:
            client.close()


async def _data(client: aiosmtplib.SMTP, message: bytes) -> None:
    reply = await client.execute_command(b"DATA")
    protocol = client.protocol
    if reply.code != START_INPUT or protocol is None:
        raise aiosmtplib.SMTPDataError(reply.code, reply.message)
    protocol._response_pending = True  # as its own method does before it sends a message
    for piece in smtp_pieces(message):
        protocol.write(piece)
        await protocol._drain_helper()
        await asyncio.sleep(0)
    reply = await protocol.read_response(timeout=SECONDS)
    if reply.code != DONE:
        raise aiosmtplib.SMTPDataError(reply.code, reply.message)


def smtp_pieces(message: bytes) -> Iterator[bytes]:
    """A message as DATA sends it, with the dot that ends it."""
    at, starts_line = 0, True
    while at < len(message):
        end = at + PIECE
        if message[end - 1 : end + 1] == b"\r\n":  # CR LF stays together
            end += 1
        piece = message[at:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")
        quoted = piece.replace(b"\n.", b"\n..")
        if starts_line and quoted.startswith(b"."):
            quoted = b"." + quoted
        yield quoted
        at, starts_line = end, piece.endswith(b"\n")
    yield b".\r\n" if starts_line else b"\r\n.\r\n"
